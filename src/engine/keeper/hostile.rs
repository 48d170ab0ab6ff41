//! A front that says anything: it is answered, and every target is left.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Once};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::Control;
use super::front::Front;
use super::launch::Inheritance;
use crate::engine::link::Link;
use crate::engine::protocol::{
    AddressSpaceId, Answer, Children, Envelope, Failure, MAX_PACKET, Message, Request,
    SignalPolicy, SiteId, TargetId, Tid, tests,
};
use crate::hostile::hostile;
use crate::record::ring::Ring;
use crate::record::shared::Counters;

/// The target of the conversation that is attached to at first.
const TARGET: TargetId = TargetId(1);

/// Packets, each behind its length.
fn conversation(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut all = Vec::new();
    for packet in packets {
        all.extend((packet.len() as u16).to_le_bytes());
        all.extend(packet);
    }
    all
}

/// What a front asks in its life.
fn conversations() -> Vec<Vec<u8>> {
    let encode = |(sequence, request): (u32, Request)| {
        let envelope = Envelope { sequence, request };
        postcard::to_stdvec(&envelope).unwrap()
    };
    let (target, tid) = (TARGET, Tid(0));
    let all = [
        Request::Interrupt { target },
        Request::Registers { target, tid },
        Request::VectorRegisters { target, tid },
        Request::Entry {
            target,
            tid,
            probe: 1,
        },
        Request::Write {
            target,
            address: 0x1000,
            bytes: vec![1; 8],
        },
        Request::Disarm {
            target,
            sites: vec![(SiteId(3), false)],
        },
        Request::Resume {
            target,
            tid: None,
            seen: 1,
        },
        Request::Attach {
            target: TargetId(2),
            pid: 1,
            signals: SignalPolicy::TRANSPARENT,
            children: Children::default(),
        },
        Request::Arm {
            target,
            space: AddressSpaceId(0),
            sites: Vec::new(),
        },
        Request::Detach { target },
        Request::Kill { target },
    ];
    let mut packets: Vec<Vec<u8>> = (1..).zip(all).map(encode).collect();
    let whole = conversation(&packets);
    packets.extend(tests::requests());
    vec![
        whole,
        conversation(&tests::requests()),
        conversation(&packets),
    ]
}

fn packets(mut input: &[u8]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    while let Some((length, rest)) = input.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
        packets.push(rest[..length].to_vec());
        input = &rest[length..];
    }
    // An empty one reads as the front's end.
    packets.retain(|packet| !packet.is_empty());
    packets.truncate(200);
    packets
}

/// Only our own processes are traced or started.
fn tame(packet: Vec<u8>, pid: i32, tid: i32) -> Vec<u8> {
    let Ok(mut envelope) = postcard::from_bytes::<Envelope>(&packet) else {
        return packet;
    };
    match &mut envelope.request {
        Request::Attach { pid: whom, .. } => *whom = pid,
        Request::Launch { launch, .. } => {
            launch.program = b"/bin/true".to_vec();
            launch.arguments = vec![b"true".to_vec()];
        }
        Request::Registers { tid: whom, .. }
        | Request::SetRegisters { tid: whom, .. }
        | Request::VectorRegisters { tid: whom, .. }
            if whom.0 == 0 =>
        {
            whom.0 = tid;
        }
        _ => return packet,
    }
    postcard::to_stdvec(&envelope).unwrap()
}

struct Sleeper(Child);

impl Sleeper {
    fn start() -> Sleeper {
        let mut command = Command::new("sleep");
        let command = command
            .arg("1000")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Sleeper(command.spawn().unwrap())
    }

    fn pid(&self) -> i32 {
        self.0.id() as i32
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ask(link: &Link, sequence: u32, request: Request, file: Option<&File>) {
    let envelope = Envelope { sequence, request };
    link.send(&postcard::to_stdvec(&envelope).unwrap(), file)
        .unwrap();
}

fn answer(link: &Link, sequence: u32) -> Answer {
    let mut buf = vec![0; MAX_PACKET];
    loop {
        let mut wait = [PollFd::new(link.descriptor().as_fd(), PollFlags::POLLIN)];
        assert_eq!(
            poll(&mut wait, PollTimeout::from(30_000_u16)),
            Ok(1),
            "no answer"
        );
        let (length, _) = link.receive(&mut buf, true).unwrap().expect("it goes on");
        match postcard::from_bytes(&buf[..length]).unwrap() {
            Message::Reply(number, answer) if number == sequence => return answer,
            _ => {}
        }
    }
}

fn converse(input: &[u8]) {
    static HOOK: Once = Once::new();
    // A tracing thread that panics leaves its target, which is not what this is about.
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            eprintln!("{panic}");
            std::process::exit(101);
        }));
    });
    let (front, back) = Link::pair().unwrap();
    let counters = Counters::create().unwrap();
    let control = Control {
        front: Arc::new(Front::new(back).unwrap()),
        counters: Arc::new(counters),
        inheritance: Inheritance {
            group: 0,
            ignored: 0,
        },
        threads: HashMap::new(),
        hosts: Arc::default(),
    };
    let keeper = std::thread::spawn(move || control.run());
    let sleeper = Sleeper::start();
    let ring = Ring::create(4096).unwrap();
    let attach = Request::Attach {
        target: TARGET,
        pid: sleeper.pid(),
        signals: SignalPolicy::TRANSPARENT,
        children: Children::default(),
    };
    ask(&front, u32::MAX - 1, attach, Some(ring.file()));
    assert!(matches!(
        answer(&front, u32::MAX - 1),
        Answer::Target { .. }
    ));
    for packet in packets(input) {
        let packet = tame(packet, sleeper.pid(), sleeper.pid());
        // Without room the keeper is still busy with the others: that is told by the last answer.
        let _ = front.offer(&packet, Some(ring.file()));
    }
    let unknown = Request::Registers {
        target: TargetId(u32::MAX),
        tid: Tid(1),
    };
    ask(&front, u32::MAX - 2, unknown, None);
    assert_eq!(
        answer(&front, u32::MAX - 2),
        Answer::Failed(Failure::NoTarget)
    );
    drop(front);
    keeper.join().unwrap().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", sleeper.pid()));
    let traced = status.is_ok_and(|status| !status.contains("TracerPid:\t0\n"));
    assert!(!traced, "it is still traced");
}

hostile!(fuzz_keeper, conversations(), { cases: 30 }, converse);
