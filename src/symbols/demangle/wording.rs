//! `cpp_demangle`'s texts in the wording of gdb's demangler.

/// Brings a text of `cpp_demangle` into gdb's wording.
pub(super) fn reword(text: &str) -> String {
    let mut text = text
        .replace(", >", ">")
        .replace("(, ", "(")
        .replace(", &&)", ")")
        .replace("(&&)", "()")
        .replace(", &)", ")");
    for (short, long) in ABBREVIATIONS {
        if text.contains(short) {
            text = abbreviate(&text, short, long);
        }
    }
    let text = if text.contains(")::*") {
        member_pointers(&text)
    } else {
        text
    };
    let text = inner_references(text.replace("std::nullptr_t", "decltype(nullptr)"));
    let text = literals(&text);
    function_types(&text)
}

/// The ABI's abbreviations `Si`, `So`, `Sd`, `Ss`, in the short form and in full.
const ABBREVIATIONS: [(&str, &str); 4] = [
    (
        "istream",
        "std::basic_istream<char, std::char_traits<char> >",
    ),
    (
        "ostream",
        "std::basic_ostream<char, std::char_traits<char> >",
    ),
    (
        "iostream",
        "std::basic_iostream<char, std::char_traits<char> >",
    ),
    (
        "string",
        "std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
    ),
];

/// gdb spells abbreviated classes out.
fn abbreviate(text: &str, short: &str, long: &str) -> String {
    let name = format!("std::{short}");
    let base = &long[5..long.find('<').unwrap_or(long.len())];
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(&name) {
        let behind = &rest[at + name.len()..];
        out.push_str(&rest[..at]);
        let within = out.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ':'));
        if within
            || behind
                .starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '(' | '<' | '['))
        {
            out.push_str(&name);
            rest = behind;
            continue;
        }
        out.push_str(long);
        rest = behind;
        for tilde in ["::", "::~"] {
            if let Some(behind) = rest
                .strip_prefix(tilde)
                .and_then(|rest| rest.strip_prefix(short))
                .filter(|b| b.starts_with(['(', '<']))
            {
                out.push_str(tilde);
                out.push_str(base);
                rest = behind;
            }
        }
        // `std::string>` was written without the space that a closing `>` asks for.
        if rest.starts_with('>') {
            out.push(' ');
        }
    }
    out.push_str(rest);
    out
}

/// `void (C(args)::*)(params)` is a function that returns a pointer to a member: the `::*` belongs
/// before the arguments.
fn member_pointers(text: &str) -> String {
    let mut text = text.to_string();
    // Each round moves one `::*` to the left over one group.
    for _ in 0..64 {
        let Some(at) = text.find(")::*") else { break };
        let Some(open) = opening(text.as_bytes(), at) else {
            break;
        };
        let Some(star) = text[at..].find('*').map(|star| at + star + 1) else {
            break;
        };
        text = format!("{}::*{}{}", &text[..open], &text[open..=at], &text[star..]);
    }
    text
}

/// `Outer&::Inner` is a reference to `Outer::Inner`.
fn inner_references(mut text: String) -> String {
    for sign in ["&::", "*::"] {
        // Each round moves one sign to the right over one component.
        for _ in 0..64 {
            let Some(at) = text.find(sign) else { break };
            if text[..at].ends_with("operator") || text[at + 3..].starts_with('*') {
                break;
            }
            let behind = at + 3;
            let length = text[behind..]
                .bytes()
                .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_')
                .count();
            if length == 0 {
                break;
            }
            text.insert(behind + length, char::from(sign.as_bytes()[0]));
            text.remove(at);
        }
    }
    text
}

/// The parenthesis that `text[close]` closes.
fn opening(text: &[u8], close: usize) -> Option<usize> {
    let mut depth = 0usize;
    for at in (0..=close).rev() {
        match text[at] {
            b')' => depth += 1,
            b'(' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The parenthesis that closes `text[open]`.
fn closing(text: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in text.iter().enumerate().skip(open) {
        match byte {
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Literals of the integer types with a suffix: `(unsigned int)4` is `4u`.
fn literals(text: &str) -> String {
    const SUFFIXES: [(&str, &str); 6] = [
        ("(unsigned int)", "u"),
        ("(unsigned long)", "ul"),
        ("(unsigned long long)", "ull"),
        ("(long)", "l"),
        ("(long long)", "ll"),
        ("(int)", ""),
    ];
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    'text: while let Some(open) = rest.find('(') {
        for (cast, suffix) in SUFFIXES {
            let Some(number) = rest[open..].strip_prefix(cast) else {
                continue;
            };
            let sign = usize::from(number.starts_with('-'));
            let digits = number[sign..]
                .bytes()
                .take_while(u8::is_ascii_digit)
                .count();
            // Behind a name it is a parameter list: `f(int)`.
            let behind_name = rest[..open]
                .ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ')' | '>'));
            if digits > 0 && !behind_name {
                out.push_str(&rest[..open]);
                out.push_str(&number[..sign + digits]);
                out.push_str(suffix);
                rest = &number[sign + digits..];
                continue 'text;
            }
        }
        out.push_str(&rest[..=open]);
        rest = &rest[open + 1..];
    }
    out.push_str(rest);
    out
}

/// In template arguments: `R(A)`, a function type, is `R (A)`; the address of a function `&f(A)` is `&(f(A))`.
fn function_types(text: &str) -> String {
    if !text.contains('<') {
        return text.to_string();
    }
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len() + 8);
    let mut open: Vec<u8> = Vec::new();
    let mut copied = 0;
    let mut at = 0;
    while at < bytes.len() {
        if let Some(length) = operator_length(&text[at..], at, bytes) {
            at += length;
            continue;
        }
        match bytes[at] {
            byte @ (b'<' | b'{' | b'[') => open.push(byte),
            b'(' => {
                let name_before = at > 0
                    && (bytes[at - 1].is_ascii_alphanumeric()
                        || matches!(bytes[at - 1], b'_' | b'>'));
                if open.last() == Some(&b'<') && name_before && is_function_type(bytes, at) {
                    match (function_address(bytes, at), closing(bytes, at)) {
                        (Some(address), Some(close)) if address >= copied => {
                            out.push_str(&text[copied..=address]);
                            out.push('(');
                            out.push_str(&text[address + 1..=close]);
                            out.push(')');
                            at = close + 1;
                            copied = at;
                            continue;
                        }
                        _ => {
                            out.push_str(&text[copied..at]);
                            out.push(' ');
                        }
                    }
                    copied = at;
                }
                open.push(b'(');
            }
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' | b'}' | b']' | b')' => {
                open.pop();
            }
            _ => {}
        }
        at += 1;
    }
    out.push_str(&text[copied..]);
    out
}

fn is_function_type(bytes: &[u8], open: usize) -> bool {
    const WORDS: [&[u8]; 4] = [b"decltype", b"sizeof", b"noexcept", b"alignof"];
    !WORDS.iter().any(|word| bytes[..open].ends_with(word))
        && closing(bytes, open).is_some_and(|close| !bytes[close + 1..].starts_with(b"::"))
}

/// Where the address of a function that is the template argument before `open` begins.
fn function_address(bytes: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for at in (0..open).rev() {
        match bytes[at] {
            b'>' | b')' | b'}' | b']' => depth += 1,
            b'<' | b'(' | b'{' | b'[' if depth == 0 => return None,
            b'<' | b'(' | b'{' | b'[' => depth -= 1,
            b',' if depth == 0 => return None,
            b'&' if depth == 0 && (bytes[..at].ends_with(b", ") || bytes[..at].ends_with(b"<")) => {
                return Some(at);
            }
            _ => {}
        }
    }
    None
}

/// The length of `operator<` and its like, whose brackets open and close nothing.
pub(in crate::symbols) fn operator_length(rest: &str, at: usize, bytes: &[u8]) -> Option<usize> {
    if !rest.starts_with("operator")
        || at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_')
    {
        return None;
    }
    let symbols = &rest.as_bytes()["operator".len()..];
    const NAMES: [&str; 16] = [
        "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "()", "[]", "<", ">", "==", "!=",
        ",",
    ];
    NAMES
        .iter()
        .find(|name| symbols.starts_with(name.as_bytes()))
        .map(|name| "operator".len() + name.len())
}

/// A pack of forwarding references (`Args&&...`): `cpp_demangle` leaves the `&&` of its elements out.
///
/// The elements are the last template arguments and the last parameters.
pub(super) fn forwarded_pack(text: String) -> Option<String> {
    let bytes = text.as_bytes();
    let open = opening(bytes, text.rfind(')')?)?;
    let close = text.rfind(')')?;
    let angle = angle_opening(bytes, open.checked_sub(1)?)?;
    let arguments = split_list(&text[angle + 1..open - 1]);
    let mut parameters: Vec<String> = split_list(&text[open + 1..close])
        .into_iter()
        .map(str::to_string)
        .collect();
    let bare = |text: &str| text.trim_end_matches("&&").trim_end().to_string();
    let elements = arguments.iter().rev().zip(parameters.iter().rev());
    let count = elements
        .take_while(|(argument, parameter)| bare(argument) == bare(parameter))
        .count();
    let first = parameters.len() - count;
    for parameter in &mut parameters[first..] {
        if !parameter.ends_with('&') && !parameter.contains("(&)") {
            parameter.push_str("&&");
        }
    }
    Some(format!(
        "{}{}{}",
        &text[..=open],
        parameters.join(", "),
        &text[close..]
    ))
}

/// The `<` that the `>` at `close` closes.
fn angle_opening(bytes: &[u8], close: usize) -> Option<usize> {
    if bytes[close] != b'>' {
        return None;
    }
    let mut depth = 0usize;
    for at in (0..=close).rev() {
        match bytes[at] {
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' | b')' | b'}' | b']' => depth += 1,
            b'<' | b'(' | b'{' | b'[' => {
                depth -= 1;
                if depth == 0 {
                    return (bytes[at] == b'<').then_some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Parts a list at its own commas.
fn split_list(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0usize, 0, Vec::new());
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'{' | b'[' => depth += 1,
            b'>' | b')' | b'}' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}
