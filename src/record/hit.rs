//! What is reported: one hit of one probe, and what else a stream of records holds.

/// One pass of a thread through a probe whose condition was true.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Hit {
    /// CLOCK_MONOTONIC, ns.
    pub mono_ns: u64,
    /// CLOCK_REALTIME, ns since the epoch.
    pub wall_ns: u64,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The thread's name.
    pub comm: String,
    /// The CPU it ran on, where that is known.
    pub cpu: Option<u32>,
    /// The probe's number.
    pub probe: u32,
    /// The run-time address of the site.
    pub site: u64,
    /// The function there, demangled (`name+off` inside it); empty if there is no symbol.
    pub function: String,
    /// The message that a named probe is about.
    pub msg: Option<Message>,
    /// Name and text of each argument that is shown.
    pub args: Vec<(String, String)>,
    /// At a way out of a function: the text of what it returns, `None` where that is not known yet.
    pub retval: Option<Option<String>>,
    /// The lines that the body printed.
    pub out: Vec<String>,
    /// What ended the body early.
    pub fault: Option<HitFault>,
}

/// Where a message is in the target's memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Message {
    /// How it is encoded, where that is known.
    pub codec: Option<String>,
    /// Its first byte.
    pub address: u64,
    /// How many bytes it has, where that is known.
    pub length: Option<u64>,
}

/// Why a body ended before its last command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HitFault {
    /// Position of the command in the body, from 0, nested ones counted; `None` for the condition.
    pub command: Option<u16>,
    /// gdb's text.
    pub message: String,
}

/// What one probe came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ProbeSummary {
    /// The probe's number.
    pub probe: u32,
    /// Its location as it was written.
    pub location: String,
    /// Passes whose condition was true.
    pub hits: u64,
    /// Records that were written.
    pub records: u64,
    /// Hits that a rate left out, where there is one.
    pub skipped: Option<u64>,
    /// Records that were lost.
    pub drops: u64,
    /// Bodies that ended early.
    pub faults: u64,
    /// What a hit cost, in ns, where that was measured.
    pub ns_per_hit: Option<u64>,
    /// What came of calls whose beginnings were looked at.
    pub calls: Option<Calls>,
    /// Passes whose condition needed a value that was not available.
    pub undecided: u64,
}

/// Calls that were seen to begin, and what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Calls {
    /// How many began.
    pub entries: u64,
    /// How many returned.
    pub returns: u64,
    /// How many an exception, a `longjmp` or their thread's end left.
    pub dropped: u64,
    /// How many were forgotten for want of room.
    pub evicted: u64,
    /// Returns of calls that had begun before anybody looked.
    pub unknown: u64,
}

impl Calls {
    /// How many are under way.
    pub fn open(&self) -> u64 {
        let over = self.returns + self.dropped + self.evicted;
        self.entries.saturating_sub(over)
    }
}

/// The end of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Summary {
    /// How long was recorded, ns.
    pub duration_ns: u64,
    /// Each probe.
    pub probes: Vec<ProbeSummary>,
}
