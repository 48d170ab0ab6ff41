//! What front and keeper say to each other.
//!
//! One message is one `SOCK_SEQPACKET` packet, encoded with postcard. Every [`Request`] gets one
//! [`Reply`] with its sequence number; [`Event`]s come when they happen. Hits do not travel here
//! but through the shared ring ([`crate::record::ring`]).

use serde::{Deserialize, Serialize};

use crate::arch::Registers;
use crate::probe::program::Program;

/// A program that is being traced, by the front's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TargetId(pub u32);

/// A thread, by its kernel id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Tid(pub i32);

/// One set of mappings: threads share it, a `vfork`ed child does too, a forked child has its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AddressSpaceId(pub u32);

/// A site of one target, by the front's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SiteId(pub u32);

/// What the thread does when a probe's program said "hit".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Then {
    /// Write a record and go on.
    Continue,
    /// Stay stopped and tell the front ([`Event::Stopped`]); no record.
    Stop,
    /// The same, also where the condition cannot be evaluated: then a record with the fault comes
    /// before the event.
    StopOnFault,
    /// Nothing: the program keeps what another one at the return will ask for.
    Nothing,
}

/// One probe at a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteProbe {
    /// Its place in the shared counters, which every record and event names.
    pub probe: u16,
    /// Condition and body.
    pub program: Program,
    /// What follows a hit.
    pub then: Then,
}

/// A site to arm, or an armed one whose probes change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteSpec {
    /// The front's number for it.
    pub id: SiteId,
    /// The run-time address of an instruction.
    pub address: u64,
    /// What the file holds there: 1 to 16 bytes, at least the first instruction. Memory that
    /// differs belongs to somebody else and is refused.
    pub code: Vec<u8>,
    /// It stands on a `ret` that is done for the thread, unless that has a shadow stack, so that no
    /// page of ours is mapped for a slot: the addresses of what the program maps afterwards stay
    /// what they would be.
    pub by_hand: bool,
    /// A thread that the first probe stopped waits for the front only so long (0: as long as it
    /// takes): what the front wants to know there for itself must not hold the program up.
    pub patience_ms: u32,
    /// In number order.
    pub probes: Vec<SiteProbe>,
}

/// Which signals stop a thread and tell the front, which only tell it, and which reach the
/// program. Bit n-1 is signal n, as in `/proc/PID/status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalPolicy {
    /// Stop and tell.
    pub stop: u64,
    /// Tell, where the thread does not stop ([`Event::Signalled`]).
    pub tell: u64,
    /// Deliver to the program.
    pub pass: u64,
}

impl SignalPolicy {
    /// Everything is delivered and nothing stops: what a tracer wants.
    pub const TRANSPARENT: SignalPolicy = SignalPolicy {
        stop: 0,
        tell: 0,
        pass: !0,
    };
}

/// What of memory is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// Changes.
    Write,
    /// Reads: what touches it and changes nothing.
    Read,
    /// Both.
    Any,
}

/// Memory that is watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchSpec {
    /// Its probe's place in the shared counters.
    pub probe: u16,
    /// What is told of.
    pub access: Access,
    /// Addresses and lengths.
    pub regions: Vec<(u64, u32)>,
    /// Decides about each touch, and counts it; without, the front does.
    pub condition: Option<Program>,
}

/// What is watched was touched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    /// Whose: [`WatchSpec::probe`].
    pub probe: u16,
    /// What was in its regions before; nothing where it could not be read.
    pub before: Vec<Vec<u8>>,
    /// What is in them since then.
    pub now: Vec<Vec<u8>>,
    /// The condition holds, and the hit is counted.
    pub decided: bool,
}

/// Which system calls stop a thread, at their beginning and at their end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calls {
    /// All.
    pub all: bool,
    /// Otherwise these numbers.
    pub numbers: Vec<u64>,
}

impl Calls {
    /// None does.
    pub fn is_none(&self) -> bool {
        !self.all && self.numbers.is_empty()
    }

    /// Whether this one does.
    pub fn has(&self, number: u64) -> bool {
        self.all || self.numbers.contains(&number)
    }
}

/// What becomes of the processes that a target makes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Children {
    /// They are traced like their parent, with its sites, as targets of their own; otherwise they are
    /// let go, unharmed.
    pub keep: bool,
    /// The thread that makes one stops ([`Reason::Forked`]), and the new process, if it is kept,
    /// stands too.
    pub stop: bool,
}

/// How a process came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Birth {
    /// With a copy of the memory: `fork`, or `clone` like it.
    Fork,
    /// With its parent's memory, while the parent waits: `vfork`, `posix_spawn`.
    Vfork,
    /// With its parent's memory, beside it: `clone` with `CLONE_VM` only.
    Clone,
}

/// What became of a new process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fate {
    /// It was let go, unharmed.
    LetGo,
    /// It has its parent's memory: it is traced as if it were a thread of the parent, until it ends or
    /// executes a program.
    Shares,
    /// It is a target of its own, with its parent's sites, or with none if it has executed a program.
    Kept(TargetId),
}

/// How to launch a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The file that is executed.
    pub program: Vec<u8>,
    /// The argument vector, `argv[0]` first.
    pub arguments: Vec<Vec<u8>>,
    /// `NAME=VALUE` strings.
    pub environment: Vec<Vec<u8>>,
    /// Leave address space randomization on.
    pub randomize: bool,
    /// How many `execve`s pass before the program itself runs (1 for a shell in front of it).
    pub skip_execs: u32,
    /// Its standard output is the front's standard error (records own standard output).
    pub stdout_to_stderr: bool,
    /// What its signals do.
    pub signals: SignalPolicy,
    /// What becomes of its children.
    pub children: Children,
}

/// What the front asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Request {
    /// With the ring's descriptor. Answer: [`Answer::Target`]; the only thread stands at the
    /// first instruction after the exec.
    Launch { target: TargetId, launch: Launch },
    /// With the ring's descriptor. Answer: [`Answer::Target`]; all threads run on.
    Attach {
        target: TargetId,
        pid: i32,
        signals: SignalPolicy,
        children: Children,
    },
    /// What becomes of the children that a target makes from now on.
    Children {
        target: TargetId,
        children: Children,
    },
    /// Arms sites or replaces the probes of armed ones. Answer: [`Answer::Refused`].
    Arm {
        target: TargetId,
        /// The image that the front looked at; another one is there after an `execve`.
        space: AddressSpaceId,
        sites: Vec<SiteSpec>,
    },
    /// Answer: [`Answer::Refused`].
    Disarm {
        target: TargetId,
        /// With each, whether the code there is mapped no more: then nothing is put back.
        sites: Vec<(SiteId, bool)>,
    },
    /// Lets one stopped thread go on, or all of them. A thread at a site passes it.
    Resume {
        target: TargetId,
        tid: Option<Tid>,
        /// The number of the last stop that the front has looked at. A thread whose stop came
        /// later waits on, since the front will act on what it says.
        seen: u64,
    },
    /// A stopped thread gets this signal (0: none) when it goes on, instead of the one that it
    /// stopped with.
    QueueSignal {
        target: TargetId,
        tid: Tid,
        signal: i32,
    },
    /// Stops every thread. The answer comes when all of them stand. Threads that arrive at a
    /// stopping site meanwhile send their own [`Event::Stopped`] first.
    Interrupt { target: TargetId },
    /// Answer: [`Answer::Registers`] of a stopped thread.
    Registers { target: TargetId, tid: Tid },
    SetRegisters {
        target: TargetId,
        tid: Tid,
        registers: Registers,
    },
    /// Answer: [`Answer::Entry`] of a thread that stands at a way out: what its call had kept for
    /// a probe.
    Entry {
        target: TargetId,
        tid: Tid,
        probe: u16,
    },
    /// Answer: [`Answer::Bytes`]: the thread's XSAVE area (NT_X86_XSTATE).
    VectorRegisters { target: TargetId, tid: Tid },
    /// Writes memory (read-only mappings too). Bytes over a site go below its int3.
    Write {
        target: TargetId,
        address: u64,
        bytes: Vec<u8>,
    },
    /// Watches this memory, and no other. Answer: [`Answer::Unwatched`], when every thread does.
    Watch {
        target: TargetId,
        watches: Vec<WatchSpec>,
    },
    /// Stops threads at these system calls, and at no others.
    Calls { target: TargetId, calls: Calls },
    /// Changes what signals do, also to threads that stand with one already.
    Signals {
        target: TargetId,
        signals: SignalPolicy,
    },
    /// Whether a program that was launched ends with the front, where it runs on otherwise.
    ExitKill { target: TargetId, on: bool },
    /// Puts everything back and leaves; the program runs on.
    Detach { target: TargetId },
    /// Ends the program.
    Kill { target: TargetId },
}

impl Request {
    /// Whom it is about.
    pub fn target(&self) -> TargetId {
        match self {
            Request::Launch { target, .. }
            | Request::Attach { target, .. }
            | Request::Children { target, .. }
            | Request::Arm { target, .. }
            | Request::Disarm { target, .. }
            | Request::Resume { target, .. }
            | Request::QueueSignal { target, .. }
            | Request::Interrupt { target }
            | Request::Registers { target, .. }
            | Request::SetRegisters { target, .. }
            | Request::VectorRegisters { target, .. }
            | Request::Entry { target, .. }
            | Request::Write { target, .. }
            | Request::Watch { target, .. }
            | Request::Signals { target, .. }
            | Request::ExitKill { target, .. }
            | Request::Calls { target, .. }
            | Request::Detach { target }
            | Request::Kill { target } => *target,
        }
    }
}

/// What a request got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Answer {
    Done,
    /// A descriptor of the target's memory comes with it.
    Target {
        pid: i32,
        space: AddressSpaceId,
        threads: Vec<Tid>,
    },
    Registers(Box<Registers>),
    Bytes(Vec<u8>),
    /// Of several sites those for which it could not be done; none, if it was done for all.
    Refused(Vec<(SiteId, Failure)>),
    /// The probes whose memory cannot be watched beside the others'. If there are any, what was
    /// watched before still is.
    Unwatched(Vec<u16>),
    /// Values by their place; `None` for a call that was not seen to begin.
    Entry(Option<Vec<(u16, u64)>>),
    Failed(Failure),
}

/// Why the keeper could not do what was asked. Numbers only: the front makes the sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Failure {
    /// A system call failed.
    System {
        call: Call,
        errno: i32,
    },
    NoTarget,
    /// The thread does not exist or is not stopped.
    NotStopped,
    /// Memory at the site is not what the file holds: another tool's, or changed by the program.
    Foreign {
        address: u64,
        found: Vec<u8>,
    },
    /// The first instruction cannot be passed out of line.
    Instruction {
        address: u64,
        why: String,
    },
    /// Memory could not be written at this address.
    Memory {
        address: u64,
    },
    /// The process runs another program than the one that the front looked at.
    Replaced,
    /// A program that the interpreter refuses, or a request that does not decode.
    Malformed,
}

/// The system call of a [`Failure::System`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Call {
    Fork,
    Exec,
    Seize,
    OpenMemory,
    Registers,
    Watch,
    Other,
}

/// Why a thread stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Reason {
    /// A site with a probe that stops; the first such probe.
    Probe { site: SiteId, probe: u16 },
    /// A signal of the policy's `stop` set; `code` is its `si_code`.
    Signal { number: i32, code: i32 },
    /// A system call of [`Request::Calls`] begins or has ended.
    Call { number: u64, begins: bool },
    /// Memory that is watched was touched; [`Event::Touched`] came before.
    Watch,
    /// A new program image: every site is forgotten; resolve again, then resume.
    Exec {
        space: AddressSpaceId,
        /// The thread that has executed it; it has the process's number since, and all others are gone.
        former: Tid,
    },
    /// It has made a process; [`Event::Forked`] came before.
    Forked { child: i32, birth: Birth },
}

/// What happens by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Event {
    /// A thread stands and waits for [`Request::Resume`].
    Stopped {
        target: TargetId,
        tid: Tid,
        /// Counts the stops that a target tells of, from 1.
        number: u64,
        reason: Reason,
        registers: Box<Registers>,
        /// All records up to this byte of the ring come before it.
        ring: u64,
    },
    /// A thread has touched what is watched; that it stands comes next.
    Touched {
        target: TargetId,
        tid: Tid,
        triggers: Vec<Trigger>,
    },
    /// A thread got a signal of the policy's `tell` set, and goes on.
    Signalled {
        target: TargetId,
        tid: Tid,
        number: i32,
        /// As in [`Event::Stopped`].
        ring: u64,
    },
    ThreadStarted {
        target: TargetId,
        tid: Tid,
    },
    ThreadExited {
        target: TargetId,
        tid: Tid,
    },
    /// A thread whose stop the front did not answer in time went on. Until the front is heard of
    /// again such stops do not wait.
    WentOn {
        target: TargetId,
        tid: Tid,
    },
    /// A process was made, or one that had its parent's memory has executed a program. With it comes
    /// a descriptor of its memory, if it is kept.
    Forked {
        target: TargetId,
        /// The thread that made it; 0 behind an `execve`.
        tid: Tid,
        child: i32,
        birth: Birth,
        fate: Fate,
        ring: u64,
    },
    /// The process ended: exactly one of code and signal is `Some`.
    Exited {
        target: TargetId,
        code: Option<i32>,
        signal: Option<i32>,
        ring: u64,
    },
    /// A process that had a target's memory has ended: exactly one of code and signal is `Some`.
    SharerExited {
        target: TargetId,
        child: i32,
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// The process executes a program whose memory cannot be reached: it was left.
    Lost {
        target: TargetId,
        why: Failure,
        ring: u64,
    },
    /// Something that a person should know (a site that could not be passed and was taken out…).
    SiteLost {
        target: TargetId,
        site: SiteId,
        why: Failure,
    },
    /// The front read nothing for so long that it was not told of all: so many threads that began and
    /// ended meanwhile, and children that were let go.
    Missed {
        threads: u64,
        children: u64,
    },
    /// The thread's SIGTRAP disposition was changed by a hit and could not be repaired.
    SignalStateChanged {
        target: TargetId,
        tid: Tid,
    },
}

/// Front to keeper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// Comes back with the reply.
    pub sequence: u32,
    /// What is asked.
    pub request: Request,
}

/// Keeper to front.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// The answer to the request with that sequence number.
    Reply(u32, Answer),
    /// Something happened.
    Event(Event),
}

/// The largest packet either side sends; a longer one is refused by its sender.
pub const MAX_PACKET: usize = 128 * 1024;

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::System { call, errno } => {
                let error = std::io::Error::from_raw_os_error(*errno);
                write!(f, "The tracing process {call}: {error}.")
            }
            Failure::NoTarget => write!(f, "The program is not being run."),
            Failure::NotStopped => write!(f, "The thread is gone or running."),
            Failure::Foreign { address, found } => {
                write!(
                    f,
                    "Cannot insert breakpoint at {address:#x}: memory there is"
                )?;
                found.iter().try_for_each(|byte| write!(f, " {byte:02x}"))?;
                write!(f, " and not what the file holds.")
            }
            Failure::Instruction { address, why } => {
                write!(f, "Cannot insert breakpoint at {address:#x}: {why}.")
            }
            Failure::Memory { address } => {
                write!(f, "Cannot access memory at address {address:#x}")
            }
            Failure::Replaced => write!(f, "The process runs another program now."),
            Failure::Malformed => write!(f, "The tracing process refused a request."),
        }
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Call::Fork => "cannot start a process",
            Call::Exec => "cannot execute the program",
            Call::Seize => "cannot attach",
            Call::OpenMemory => "cannot open the target's memory",
            Call::Registers => "cannot reach the thread's registers",
            Call::Watch => "cannot set the thread's debug registers",
            Call::Other => "cannot do that to the target",
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::hostile::hostile;

    fn encoded<T: Serialize>(all: &[T]) -> Vec<Vec<u8>> {
        let encode = |one| postcard::to_stdvec(one).unwrap();
        all.iter().map(encode).collect()
    }

    pub fn requests() -> Vec<Vec<u8>> {
        let (target, tid) = (TargetId(1), Tid(77));
        let launch = Launch {
            program: b"/bin/true".to_vec(),
            arguments: vec![b"true".to_vec(); 3],
            environment: vec![b"A=B".to_vec()],
            randomize: true,
            skip_execs: 1,
            stdout_to_stderr: false,
            signals: SignalPolicy::TRANSPARENT,
            children: Children::default(),
        };
        let site = SiteSpec {
            id: SiteId(3),
            address: 0x55aa_0000_1234,
            code: vec![0x55, 0x48, 0x89, 0xe5],
            by_hand: false,
            patience_ms: 100,
            probes: vec![SiteProbe {
                probe: 1,
                program: Program::default(),
                then: Then::Continue,
            }],
        };
        let requests = [
            Request::Launch { target, launch },
            Request::Arm {
                target,
                space: AddressSpaceId(1),
                sites: vec![site; 4],
            },
            Request::Disarm {
                target,
                sites: vec![(SiteId(3), true)],
            },
            Request::Resume {
                target,
                tid: Some(tid),
                seen: 9,
            },
            Request::QueueSignal {
                target,
                tid,
                signal: 10,
            },
            Request::Write {
                target,
                address: 8,
                bytes: vec![7; 40],
            },
            Request::SetRegisters {
                target,
                tid,
                registers: Registers::default(),
            },
        ];
        encoded(&requests.map(|request| Envelope {
            sequence: 5,
            request,
        }))
    }

    pub fn messages() -> Vec<Vec<u8>> {
        let (target, tid) = (TargetId(1), Tid(77));
        encoded(&[
            Message::Reply(1, Answer::Registers(Box::default())),
            Message::Reply(2, Answer::Entry(Some(vec![(1, 2), (3, 4)]))),
            Message::Reply(
                3,
                Answer::Refused(vec![(
                    SiteId(1),
                    Failure::Instruction {
                        address: 1,
                        why: "it is none".into(),
                    },
                )]),
            ),
            Message::Event(Event::Stopped {
                target,
                tid,
                number: 4,
                reason: Reason::Exec {
                    space: AddressSpaceId(2),
                    former: tid,
                },
                registers: Box::default(),
                ring: 100,
            }),
            Message::Event(Event::SiteLost {
                target,
                site: SiteId(1),
                why: Failure::Foreign {
                    address: 8,
                    found: vec![0xcc, 1],
                },
            }),
        ])
    }

    hostile!(fuzz_requests, requests(), { cases: 3000 }, |input| {
        if let Ok(envelope) = postcard::from_bytes::<Envelope>(input) {
            let again = postcard::to_stdvec(&envelope).unwrap();
            assert_eq!(postcard::from_bytes(&again), Ok(envelope));
        }
    });

    hostile!(fuzz_messages, messages(), { cases: 3000 }, |input| {
        if let Ok(message) = postcard::from_bytes::<Message>(input) {
            if let Message::Reply(_, Answer::Failed(failure)) = &message {
                assert!(!failure.to_string().is_empty());
            }
            let again = postcard::to_stdvec(&message).unwrap();
            assert_eq!(postcard::from_bytes(&again), Ok(message));
        }
    });
}
