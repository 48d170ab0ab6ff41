//! The default line of a hit, in the shape that ftrace's readers know:
//! `COMM-TID [CPU] SECONDS.NANOS: FUNCTION: (ADDRESS) arg1=… arg2=…`.

use std::fmt::Write;

use super::hit::Hit;

/// What stands around the parts of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Palette {
    function: &'static str,
    address: &'static str,
    fault: &'static str,
    end: &'static str,
    /// Several processes are traced: each line says which one.
    pub(super) process: bool,
}

/// No colors.
pub(crate) const PLAIN: Palette = Palette {
    function: "",
    address: "",
    fault: "",
    end: "",
    process: false,
};

/// ECMA-48's: the function stands out, its address steps back, a fault is red.
pub(crate) const COLORED: Palette = Palette {
    function: "\x1b[1m",
    address: "\x1b[2m",
    fault: "\x1b[31m",
    end: "\x1b[0m",
    process: false,
};

/// The lines of a hit: the line itself, then what the body printed, then its fault. `stamp_ns` is
/// the time to show, on whichever clock was asked for; differences may be negative.
pub(crate) fn hit(hit: &Hit, stamp_ns: i64, palette: Palette) -> String {
    let mut text = line(hit, stamp_ns, palette);
    text.push('\n');
    for line in &hit.out {
        text.push_str(&escaped(line));
        text.push('\n');
    }
    if let Some(fault) = &hit.fault {
        text.push_str(palette.fault);
        text.push_str(&escaped(&fault.message));
        text.push_str(palette.end);
        text.push('\n');
    }
    text
}

/// The line without its newline.
pub(crate) fn line(hit: &Hit, stamp_ns: i64, palette: Palette) -> String {
    let cpu = match hit.cpu {
        Some(cpu) => format!("{cpu:03}"),
        None => "---".into(),
    };
    let function = match hit.function.as_str() {
        "" => "??",
        name => name,
    };
    let sign = if stamp_ns < 0 { "-" } else { "" };
    let stamp = stamp_ns.unsigned_abs();
    let Palette {
        function: name,
        address,
        end,
        process,
        ..
    } = palette;
    let process = match process {
        true => format!(" ({})", hit.pid),
        false => String::new(),
    };
    let mut line = format!(
        "{}-{}{process} [{cpu}] {sign}{}.{:09}: {name}{}{end}: {address}({:#x}){end}",
        escaped(&hit.comm),
        hit.tid,
        stamp / 1_000_000_000,
        stamp % 1_000_000_000,
        escaped(function) + if hit.retval.is_some() { "%return" } else { "" },
        hit.site,
    );
    if let Some(retval) = &hit.retval {
        let value = retval.as_deref().unwrap_or("<not available>");
        let _ = write!(line, " retval={value}");
    }
    for (name, value) in &hit.args {
        // Writing to a String cannot fail.
        let _ = write!(line, " {}={}", escaped(name), escaped(value));
    }
    line
}

/// `text` with what a terminal would act on (all control characters but the tab) written as C
/// escapes.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            _ if c.is_control() => {
                out.extend(c.to_string().bytes().map(|byte| format!("\\{byte:03o}")))
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::hit::HitFault;
    use super::*;
    use crate::hostile::hostile;

    hostile!(
        fuzz_lines,
        vec![b"\x1b]0;title\x07 \xc2\x9b31m a\tb\n".to_vec()],
        |input| {
            let text = String::from_utf8_lossy(input).into_owned();
            let mut hit = sample();
            hit.comm.clone_from(&text);
            hit.function.clone_from(&text);
            hit.args.push((text.clone(), text));
            let line = line(&hit, 0, PLAIN);
            assert!(
                !line.contains(|c: char| c.is_control() && c != '\t'),
                "{line:?}"
            );
        }
    );

    fn sample() -> Hit {
        Hit {
            tid: 42,
            comm: "cl\u{1b}[31m\nt".into(),
            cpu: Some(1),
            site: 0x1234,
            function: "a::b(int)".into(),
            args: vec![
                ("arg1".into(), "0x1".into()),
                ("arg2".into(), "\u{9b}2".into()),
            ],
            ..Hit::default()
        }
    }

    #[test]
    fn the_line_has_ftrace_s_shape() {
        assert_eq!(
            line(&sample(), 12_000_000_345, PLAIN),
            "cl\\033[31m\\nt-42 [001] 12.000000345: a::b(int): (0x1234) arg1=0x1 arg2=\\302\\2332"
        );
        let sample = Hit {
            out: vec!["x\ty\u{7}".into()],
            fault: Some(HitFault {
                command: None,
                message: "Cannot access memory at address 0x0".into(),
            }),
            ..Hit::default()
        };
        assert_eq!(
            hit(&sample, -1, PLAIN),
            "-0 [---] -0.000000001: ??: (0x0)\nx\ty\\007\nCannot access memory at address 0x0\n"
        );
    }

    #[test]
    fn colors_add_nothing_but_themselves() {
        let colors = regex::Regex::new("\x1b\\[[0-9]+m").unwrap();
        let colored = hit(&sample(), 7, COLORED);
        assert!(colored.contains("\x1b[1ma::b(int)\x1b[0m: \x1b[2m(0x1234)\x1b[0m arg1="));
        assert_eq!(colors.replace_all(&colored, ""), hit(&sample(), 7, PLAIN));
    }
}
