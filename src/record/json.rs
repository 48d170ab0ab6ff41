//! JSON, version 1: one object a line, as `schema/record-v1.json` says.
//!
//! Numbers that may need more than 53 bits (ns, counts, addresses) are strings, because several
//! readers round them.

use serde_json::{Value, json};

use super::hit::{Hit, ProbeSummary, Summary};

/// The lines of a hit: the hit, and a fault if there was one. Each without its newline.
pub(crate) fn hit(hit: &Hit) -> Vec<String> {
    let mut args = serde_json::Map::new();
    for (name, value) in &hit.args {
        args.insert(name.clone(), Value::from(value.as_str()));
    }
    let mut object = place(hit, "hit");
    object["args"] = Value::Object(args);
    object["out"] = Value::from(hit.out.clone());
    if let Some(msg) = &hit.msg {
        object["msg"] = json!({
            "codec": msg.codec,
            "address": format!("{:#x}", msg.address),
            "length": msg.length.map(|length| length.to_string()),
        });
    }
    if let Some(retval) = &hit.retval {
        object["retval"] = json!(retval);
    }
    let mut lines = vec![object.to_string()];
    if let Some(fault) = &hit.fault {
        let mut object = place(hit, "fault");
        object["command"] = json!(fault.command);
        object["message"] = json!(fault.message);
        lines.push(object.to_string());
    }
    lines
}

/// A fault in a probe's condition, where there was no hit; `hit.fault` says which.
pub(crate) fn fault(of: &Hit) -> Option<String> {
    let fault = of.fault.as_ref()?;
    let mut object = place(of, "fault");
    object["command"] = json!(fault.command);
    object["message"] = json!(fault.message);
    Some(object.to_string())
}

/// `count` records were lost since the last time this was said.
pub(crate) fn drops(mono_ns: u64, wall_ns: u64, count: u64) -> String {
    json!({
        "v": 1,
        "type": "drop",
        "mono_ns": mono_ns.to_string(),
        "wall": wall_ns.to_string(),
        "count": count.to_string(),
    })
    .to_string()
}

/// The end of the stream.
pub(crate) fn summary(summary: &Summary) -> String {
    let sum = |what: fn(&ProbeSummary) -> u64| {
        let total = summary
            .probes
            .iter()
            .map(what)
            .fold(0u64, u64::saturating_add);
        total.to_string()
    };
    let probes: Vec<Value> = summary.probes.iter().map(probe_summary).collect();
    json!({
        "v": 1,
        "type": "summary",
        "duration_ns": summary.duration_ns.to_string(),
        "hits": sum(|probe| probe.hits),
        "records": sum(|probe| probe.records),
        "drops": sum(|probe| probe.drops),
        "faults": sum(|probe| probe.faults),
        "probes": probes,
    })
    .to_string()
}

/// Something that the user should know.
pub(crate) fn warning(message: &str) -> String {
    json!({"v": 1, "type": "warning", "message": message}).to_string()
}

/// What every line about a thread at a site begins with.
fn place(hit: &Hit, kind: &str) -> Value {
    json!({
        "v": 1,
        "type": kind,
        "mono_ns": hit.mono_ns.to_string(),
        "wall": hit.wall_ns.to_string(),
        "pid": hit.pid,
        "tid": hit.tid,
        "comm": hit.comm,
        "cpu": hit.cpu,
        "probe": hit.probe,
        "site": format!("{:#x}", hit.site),
        "func": hit.function,
    })
}

fn probe_summary(probe: &ProbeSummary) -> Value {
    let mut object = json!({
        "probe": probe.probe,
        "location": probe.location,
        "hits": probe.hits.to_string(),
        "records": probe.records.to_string(),
        "drops": probe.drops.to_string(),
        "faults": probe.faults.to_string(),
        "ns_per_hit": probe.ns_per_hit.map(|ns| ns.to_string()),
    });
    if let Some(skipped) = probe.skipped {
        object["skipped"] = json!(skipped.to_string());
    }
    if let Some(calls) = &probe.calls {
        object["calls"] = json!({
            "entries": calls.entries.to_string(),
            "returns": calls.returns.to_string(),
            "dropped": calls.dropped.to_string(),
            "evicted": calls.evicted.to_string(),
            "open": calls.open().to_string(),
            "unknown": calls.unknown.to_string(),
        });
    }
    if probe.undecided > 0 {
        object["undecided"] = json!(probe.undecided.to_string());
    }
    object
}

#[cfg(test)]
mod tests {
    use super::super::hit::{HitFault, Message};
    use super::*;

    fn sample() -> Hit {
        Hit {
            mono_ns: u64::MAX,
            wall_ns: 1_700_000_000_123_456_789,
            pid: 1,
            tid: 2,
            comm: "a\u{1b}\"b".into(),
            cpu: Some(3),
            probe: 4,
            site: 0x5555_5555_5129,
            function: "vsomeip::f(int)".into(),
            msg: Some(Message {
                codec: Some("someip".into()),
                address: u64::MAX,
                length: Some(28),
            }),
            args: vec![("arg1".into(), "0x1".into())],
            retval: Some(Some("0x5".into())),
            out: vec!["line".into()],
            fault: Some(HitFault {
                command: Some(2),
                message: "Cannot access memory at address 0x0".into(),
            }),
        }
    }

    #[test]
    fn every_kind_is_what_the_schema_says() {
        let schema: Value =
            serde_json::from_str(include_str!("../../schema/record-v1.json")).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let mut lines = hit(&sample());
        lines.extend(hit(&Hit {
            retval: Some(None),
            ..Hit::default()
        }));
        lines.extend(hit(&Hit::default()));
        lines.extend(hit(&Hit {
            msg: Some(Message::default()),
            ..Hit::default()
        }));
        lines.extend(fault(&Hit {
            fault: Some(HitFault {
                command: None,
                message: "Division by zero".into(),
            }),
            ..Hit::default()
        }));
        lines.push(drops(1, 2, u64::MAX));
        lines.push(summary(&Summary {
            duration_ns: 5,
            probes: vec![
                ProbeSummary {
                    hits: u64::MAX,
                    ns_per_hit: Some(9000),
                    ..ProbeSummary::default()
                },
                ProbeSummary {
                    hits: 1,
                    calls: Some(crate::record::Calls::default()),
                    undecided: 3,
                    skipped: Some(4),
                    ..ProbeSummary::default()
                },
            ],
        }));
        lines.push(warning("w"));
        assert_eq!(lines.len(), 9);
        for line in &lines {
            let value: Value = serde_json::from_str(line).unwrap();
            assert!(!line.contains('\n'));
            let errors: Vec<String> = validator
                .iter_errors(&value)
                .map(|error| error.to_string())
                .collect();
            assert_eq!(errors, Vec::<String>::new(), "{line}");
        }
        for wrong in [
            json!({"v": 1, "type": "hit"}),
            json!({"v": 2, "type": "warning", "message": "w"}),
            json!({"v": 1, "type": "warning", "message": "w", "more": 1}),
            json!({"v": 1, "type": "drop", "mono_ns": 1, "wall": "1", "count": "1"}),
        ] {
            assert!(!validator.is_valid(&wrong), "{wrong}");
        }
    }

    #[test]
    fn numbers_keep_all_their_bits() {
        let value: Value = serde_json::from_str(&hit(&sample())[0]).unwrap();
        assert_eq!(value["mono_ns"], "18446744073709551615");
        assert_eq!(value["site"], "0x555555555129");
        assert_eq!(value["comm"], "a\u{1b}\"b");
        assert_eq!(value["args"]["arg1"], "0x1");
    }
}
