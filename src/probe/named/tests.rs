use proptest::prelude::*;

use super::parse::parse;
use super::*;
use crate::hostile::{files, hostile};

fn only(text: &str) -> Result<Named, String> {
    let list = parse("x.probes", text).map_err(|error| error.to_string())?;
    match <[Named; 1]>::try_from(list) {
        Ok([named]) => Ok(named),
        Err(list) => Err(format!("{} probes", list.len())),
    }
}

const VENDOR: &str = "\
# A vendor's stack.
probe    acme:recv
about    a message came in
message  someip
field    service/x  $_be16($_msg.address)

version  1.2
library  libacme.so
at       +0x1a30
    length   (unsigned int)$_arg3
    address  $_arg2
    topic    *(char **)$_arg1
version  any
at       acme::receive(void*, int)
    when     $_arg3 > 0
    address  acme_buffer
    value    reason/x  $_arg3 & 0xff
";

#[test]
fn the_built_in_ones_are_whole() {
    for (file, text) in BUILTIN {
        let list = parse(file, text).unwrap();
        assert!(list.iter().all(|named| !named.about.is_empty()), "{file}");
    }
    let registry = Registry::builtin();
    let names: Vec<&str> = registry.iter().map(|named| named.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "someip:recv",
            "someip:send",
            "ros2:publish",
            "ros2:take",
            "ros2:callback",
            "cyber:write",
            "cyber:read",
            "dds:write",
            "dds:arrive"
        ]
    );
}

#[test]
fn a_file_says_where_and_what() {
    let named = only(VENDOR).unwrap();
    assert_eq!((named.name.as_str(), named.at.line), ("acme:recv", 2));
    let [first, second] = named.versions.as_slice() else {
        panic!("{named:?}")
    };
    let spec = |version: &Version| version.places[0].spec(version.library.as_deref());
    assert_eq!(spec(first), "libacme.so+0x1a30");
    assert_eq!(spec(second), "acme::receive(void*, int)");
    let names = |version: &Version| -> Vec<String> {
        let list = &version.places[0].pieces.list;
        list.iter().map(|piece| piece.name.clone()).collect()
    };
    assert_eq!(
        names(first),
        ["_msg.address", "_msg.length", "_topic", "_msg.service"]
    );
    assert_eq!(names(second), ["_msg.address", "_reason", "_msg.service"]);
    let second = &second.places[0].pieces;
    assert_eq!(second.when.as_deref(), Some("$_arg3 > 0"));
    assert_eq!(second.list[1].letter, Some('x'));
    assert_eq!(second.list[1].title(), "reason");
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_the_cure() {
    let head = "probe a:b\nversion v\nat f\n";
    for (text, message) in [
        (
            "at f",
            "x.probes:1: at cannot stand in front of the first probe: there probe can stand.",
        ),
        (
            "probe recv",
            "x.probes:1: \"recv\" is no probe's name: write NS:NAME, both of small letters, digits and _.",
        ),
        (
            "probe a:b",
            "x.probes:1: a:b has no version: add `version TEXT' and `at FUNCTION'.",
        ),
        (
            "probe a:b\nversion v",
            "x.probes:2: this version has no place: add `at FUNCTION'.",
        ),
        (
            "probe a:b\nversion v\nat +0x10",
            "x.probes:3: an offset needs to know of what: add `library FILE' to its version.",
        ),
        ("probe", "x.probes:1: probe needs a name: probe NS:NAME."),
        (
            &format!("{head}{head}"),
            "x.probes:4: a:b is in line 1 already: rename one.",
        ),
        (
            &format!("{head}adress $rdi"),
            "x.probes:4: \"adress\" is no keyword: there when, address, length, topic, stamp, field, value, at, version, probe can stand.",
        ),
        (
            &format!("{head}library l"),
            "x.probes:4: library cannot stand behind at: there when, address, length, topic, stamp, field, value, at, version, probe can stand.",
        ),
        (
            &format!("{head}address $rdi+"),
            "x.probes:4: A syntax error in expression, near `'.",
        ),
        (
            &format!("{head}when (1"),
            "x.probes:4: A syntax error in expression, near `'.",
        ),
        (
            &format!("{head}length 1"),
            "x.probes:3: this place has a message's length or fields and not its address: add `address EXPR'.",
        ),
        (
            &format!("{head}address 1\naddress 2"),
            "x.probes:5: $_msg.address is in line 4 already: remove one.",
        ),
        (
            &format!("{head}value now 1"),
            "x.probes:4: \"now\" is the language's own: choose another of small letters, digits and _.",
        ),
        (
            &format!("{head}value arg1 1"),
            "x.probes:4: \"arg1\" is the language's own: choose another of small letters, digits and _.",
        ),
        (
            &format!("{head}value x/q 1"),
            "x.probes:4: /q is no format: use one of x d u o t a c s.",
        ),
        (
            &format!("{head}value x"),
            "x.probes:4: value needs a name and an expression: NAME EXPR.",
        ),
        (
            &format!("{head}topic $_stamp"),
            "x.probes:4: a:b has no $_stamp here; it has nothing by a name.",
        ),
        (
            &format!("{head}address $_msg.address"),
            "x.probes:4: a:b has no $_msg.address here; it has nothing by a name.",
        ),
    ] {
        assert_eq!(only(text).map(|_| ()), Err(message.into()), "{text}");
    }
}

#[test]
fn words_of_the_language_are_no_symbols() {
    let text = "\
probe a:b
version v
at f
    when     (uint32_t)$rdi == 1 && true
    address  (char *)$rsi
    length   *(uint64_t*)$rsi
    value    wide  sizeof(uint16_t)
";
    assert_eq!(only(text).map(|_| ()), Ok(()));
}

/// What is used twice by what is used twice doubles; used once, it is read inside all that use it.
#[test]
fn values_that_use_each_other_are_bounded() {
    let head = "probe a:b\nversion v\nat f\nvalue v0 $rdi\n";
    let chain = |most: usize, text: &dyn Fn(usize) -> String| -> Result<(), String> {
        let lines = (1..=most).map(|n| format!("value v{n} {}\n", text(n - 1)));
        only(&format!("{head}{}", lines.collect::<String>())).map(drop)
    };
    let twice = |n| format!("$_v{n} + $_v{n}");
    let once = |n| format!("$_v{n}");
    assert_eq!(chain(7, &twice), Ok(()));
    assert_eq!(chain(7, &once), Ok(()));
    let wide = |n: usize| match n % 2 {
        0 => format!("{}1", format!("$_v{n} + ").repeat(40)),
        _ => twice(n),
    };
    let complex = "The expression is too complex.";
    let deep = "The values of this place use each other too deeply.";
    for (result, why) in [
        (chain(199, &once), deep),
        (chain(199, &twice), deep),
        (chain(7, &wide), complex),
    ] {
        let error = result.unwrap_err();
        assert!(
            error.starts_with("x.probes:") && error.ends_with(why),
            "{error}"
        );
    }
    let spaced = |n| format!("$_v{n} +{}$_v{n}", " ".repeat(7000));
    assert!(chain(3, &spaced).is_ok());
    assert!(chain(7, &spaced).unwrap_err().ends_with(deep));
    let values: String = (0..100).map(|n| format!("value v{n} 1\n")).collect();
    let many = format!("probe a:b\n{values}version v\n{}", "at f\n".repeat(60));
    assert_eq!(
        only(&many).map(drop),
        Err("x.probes:1: the places of a file have more than 5000 values.".into())
    );
}

#[test]
fn a_user_s_probe_takes_the_place_of_a_built_in_one() {
    let mut registry = Registry::builtin();
    let before = registry.iter().count();
    let text = VENDOR.replace("acme:recv", "someip:recv");
    registry.add("mine.probes", &text).unwrap();
    assert_eq!(registry.iter().count(), before);
    let named = registry.get("someip:recv").unwrap();
    assert_eq!(
        (named.builtin, named.about.as_str()),
        (false, "a message came in")
    );
    let again = registry.add("other.probes", &text).unwrap_err();
    assert_eq!(
        again.message,
        "other.probes:2: someip:recv is defined at mine.probes:2 too: rename one of them."
    );
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _ = parse("x", &text);
    }

    /// Lines of the right shape in any order, cut anywhere.
    #[test]
    fn any_lines_are_read_or_refused(
        lines in proptest::collection::vec((0..14usize, "[a-z:+0-9$_ ./()*\\-]{0,12}"), 0..30),
        cut in any::<prop::sample::Index>(),
    ) {
        const WORDS: [&str; 14] = [
            "probe a:b", "about", "message", "field", "value", "version", "library", "at", "when",
            "address", "length", "topic", "stamp", "#",
        ];
        let text: String = lines.iter().map(|(word, rest)| format!("{} {rest}\n", WORDS[*word])).collect();
        if let Err(error) = parse("x", &text[..cut.index(text.len() + 1)]) {
            prop_assert!(error.at.line as usize <= lines.len());
        }
    }

    /// A good file with one line changed.
    #[test]
    fn a_damaged_file_is_read_or_refused(line in 0..20usize, new in "\\PC{0,60}") {
        let text: Vec<&str> = VENDOR.lines().enumerate()
            .map(|(n, old)| if n == line { new.as_str() } else { old }).collect();
        let _ = parse("x", &text.join("\n"));
    }
}

hostile!(
    fuzz_named_probes,
    files(&[
        "src/probe/named/builtin/someip.probes",
        "src/probe/named/builtin/ros2.probes",
        "src/probe/named/builtin/cyber.probes",
        "src/probe/named/builtin/dds.probes",
    ]),
    {
        words: &[
            "probe a:b\n", "about x\n", "message m\n", "field f/x $_msg.address\n", "value v $_v\n",
            "version v\n", "library l.so\n", "at f\n", "at +0x10\n", "when $_msg.f && 1\n",
            "address $rdi\n", "length $rsi\n", "topic *(char **)$rdi\n", "stamp $_now\n", "# \n",
        ],
    },
    |input| {
        match parse("x", &String::from_utf8_lossy(input)) {
            Ok(list) => assert!(list.iter().all(|named| !named.versions.is_empty())),
            Err(error) => {
                let text = error.to_string();
                assert!(text.starts_with("x:") && !text.contains(|c: char| c.is_control() && c != '\t'), "{text:?}");
            }
        }
    }
);

/// The example of the manual is a whole file.
#[test]
fn the_manual_s_example_is_read() {
    let manual = include_str!("../../../README.md");
    let begin = manual.find("    # Acme's bus").unwrap();
    let example: Vec<&str> = manual[begin..]
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with("    "))
        .collect();
    let named = only(&example.join("\n")).unwrap();
    let titles: Vec<&str> = named.versions.iter().map(|v| v.title.as_str()).collect();
    assert_eq!(titles, ["Acme 2.x", "Acme 1.4, stripped"]);
    assert_eq!(
        named.versions[1].places[0].spec(Some("libacme.so")),
        "libacme.so+0x1a30"
    );
}
