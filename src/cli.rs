//! The command line: which front runs, with what.

use std::process::ExitCode;

/// Runs the command that the process's arguments name; returns its exit status.
pub fn main() -> ExitCode {
    if std::env::args_os()
        .next()
        .is_some_and(|name| name == crate::engine::keeper::NAME)
    {
        return crate::engine::keeper::main();
    }
    smoke();
    ExitCode::SUCCESS
}

fn smoke() {
    use crate::engine::client::*;
    use crate::engine::protocol::*;
    use crate::probe::program::*;
    let args: Vec<String> = std::env::args().collect();
    let mut k = Keeper::start(8 << 20).unwrap();
    let t = if args[1] == "launch" {
        k.launch(Launch {
            program: args[2].clone().into_bytes(),
            arguments: args[2..]
                .iter()
                .take_while(|a| *a != "--")
                .map(|a| a.clone().into_bytes())
                .collect(),
            environment: vec![],
            randomize: false,
            skip_execs: 0,
            stdout_to_stderr: false,
            signals: SignalPolicy::TRANSPARENT,
        })
        .unwrap()
    } else {
        k.attach(args[2].parse().unwrap(), SignalPolicy::TRANSPARENT)
            .unwrap()
    };
    println!("{t:?}");
    let at = args.iter().position(|a| a == "--").unwrap();
    for (n, a) in args[at + 1..].iter().enumerate() {
        let a = u64::from_str_radix(a.trim_start_matches("0x"), 16).unwrap();
        let mut code = vec![0; 15];
        k.read(t.target, a, &mut code).unwrap();
        let program = Program {
            ops: vec![
                Op::Hit,
                Op::Const { to: V(0), value: 8 },
                Op::Register {
                    to: V(1),
                    register: crate::arch::Register::Rsp,
                },
                Op::Capture {
                    address: V(1),
                    length: V(0),
                    maximum: 8,
                },
            ],
            values: 2,
            ..Default::default()
        };
        k.counters()
            .probe(n as u16)
            .enabled
            .store(1, std::sync::atomic::Ordering::Relaxed);
        k.arm(
            t.target,
            SiteSpec {
                id: SiteId(n as u32),
                address: a,
                code,
                probes: vec![SiteProbe {
                    probe: n as u16,
                    program,
                    then: Then::Continue,
                }],
            },
        )
        .unwrap();
    }
    k.resume(t.target, None, None).unwrap();
    let mut hits = 0u64;
    let secs: u64 = std::env::var("SECS")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(3600);
    let start = std::time::Instant::now();
    while start.elapsed().as_secs() < secs {
        match k.next(std::time::Duration::from_millis(100)) {
            Ok(Some(Happening::Hit(..))) => hits += 1,
            Ok(Some(Happening::Event(e))) => {
                println!("{e:?}");
                if matches!(e, Event::Exited { .. }) {
                    break;
                }
            }
            Ok(None) => {}
            Err(e) => {
                println!("{e}");
                break;
            }
        }
    }
    for n in 0..args.len() - at - 1 {
        let c = k.counters().probe(n as u16);
        println!(
            "{n}: hits {:?} drops {:?} faults {:?} cost/hit {}",
            c.hits,
            c.drops,
            c.faults,
            c.cost_ns.load(std::sync::atomic::Ordering::Relaxed)
                / c.hits.load(std::sync::atomic::Ordering::Relaxed).max(1)
        );
    }
    println!("records {hits}");
    println!("{:?}", k.detach(t.target));
}
