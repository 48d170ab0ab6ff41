//! The engines: where a probe's program runs.
//!
//! The one engine so far is the **keeper**: a small process of its own that is the ptrace parent
//! of every target and does nothing else. The command that a person typed is its *front*: it
//! holds symbols, scripts and the prompt, talks to the keeper over a socket pair ([`protocol`])
//! and reads the hits from shared memory. When the front dies, however it dies, the keeper sees
//! the socket close and leaves every target as it found it.

pub mod arrivals;
pub mod client;
pub mod keeper;
mod link;
pub mod protocol;
pub mod trial;
pub mod uprobe;
