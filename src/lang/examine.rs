//! `x/NFU ADDRESS`: memory by format and size, remembered from one command to the next.

use std::io::Write;

use super::strings::{Charset, PRINT_MAX, prefix, read_available, text_at};
use super::{Error, Kind, Place, Scope, Type, Value, format_scalar, linkage_symbolic};

/// Decodes the instruction that `bytes` (at most 15, fewer where memory ends) begin at an address:
/// its length and text. The last parameter gives `name+offset` of an address. `None` if `bytes`
/// ends inside the instruction.
pub(crate) type Disassemble<'d> =
    &'d dyn Fn(&[u8], u64, &dyn Fn(u64) -> Option<String>) -> Option<(usize, String)>;

/// The longest instruction, in bytes.
pub(crate) const INSTRUCTION_MAX: usize = 15;

/// What stands behind the slash of a command, as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spec {
    /// How many; negative counts go back. 1 if not given.
    pub count: i32,
    /// The format letter, if given.
    pub format: Option<char>,
    /// The size letter (`b h w g`), if given.
    pub size: Option<char>,
}

impl Spec {
    /// Reads `NFU` behind a slash; gives the rest without leading blanks.
    pub(crate) fn parse(text: &str) -> (Spec, &str) {
        let (sign, text) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text),
        };
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let mut spec = Spec {
            count: sign,
            format: None,
            size: None,
        };
        if digits > 0 {
            // As atoi: saturated at 64 bits, then cut to 32.
            let number = text[..digits].parse::<i64>().unwrap_or(i64::MAX);
            spec.count = sign.wrapping_mul(number as i32);
        }
        let mut rest = &text[digits..];
        while let Some(c) = rest.chars().next().filter(char::is_ascii_lowercase) {
            match c {
                'b' | 'h' | 'w' | 'g' => spec.size = Some(c),
                // Raw values and memory tags: nothing here has either.
                'r' | 'm' => {}
                _ => spec.format = Some(c),
            }
            rest = &rest[1..];
        }
        (spec, rest.trim_start_matches([' ', '\t']))
    }

    /// The format and size that result, given what was used last. A size of `None` is the width of
    /// `x/s`'s plain strings.
    pub(crate) fn resolve(self, last_format: char, last_size: char) -> (char, Option<char>) {
        match (self.format, self.size) {
            (None, None) => (last_format, Some(last_size)),
            (None, size) => (if last_format == 'i' { 'x' } else { last_format }, size),
            (Some(format), size @ Some(_)) => (format, size),
            (Some('a'), None) => ('a', Some('g')),
            (Some('f'), None) => ('f', Some(if last_size == 'w' { 'w' } else { 'g' })),
            (Some('c'), None) => ('c', Some('b')),
            (Some('s'), None) => ('s', None),
            (Some(format), None) => (format, Some(last_size)),
        }
    }
}

/// What one `x` leaves for the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExamineState {
    /// The last format letter of `x` and of `print/FMT`; `x` at first.
    pub format: char,
    /// The last size letter; `w` at first.
    pub size: char,
    /// The last count.
    pub count: i32,
    /// The address behind what was shown last.
    pub next: Option<u64>,
}

impl Default for ExamineState {
    fn default() -> ExamineState {
        ExamineState {
            format: 'x',
            size: 'w',
            count: 1,
            next: None,
        }
    }
}

/// Why a command stopped: something in the target or the text, or the reader of the output.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// gdb's text.
    #[error(transparent)]
    Command(#[from] Error),
    /// The output could not be written.
    #[error(transparent)]
    Output(#[from] std::io::Error),
}

/// How many bytes an item of this size letter has.
pub(crate) fn size_bytes(size: char) -> u64 {
    match size {
        'b' => 1,
        'h' => 2,
        'w' => 4,
        _ => 8,
    }
}

/// gdb's complaint about a letter that is no format; it comes when the value is shown.
pub(crate) fn check_letter(letter: Option<char>) -> Result<(), Error> {
    match letter {
        Some(letter) if !"xduotzcafsir".contains(letter) => {
            Err(Error::new(format!("Undefined output format \"{letter}\".")))
        }
        _ => Ok(()),
    }
}

/// The address that a value stands for, as `x` takes it.
pub(crate) fn address_of(value: &Value, scope: &dyn Scope) -> Result<u64, Error> {
    value.as_u64(scope)
}

/// Runs `x`. `address` is `None` where no expression was given.
pub(crate) fn examine(
    spec: Option<Spec>,
    address: Option<u64>,
    state: &mut ExamineState,
    scope: &mut dyn Scope,
    disassemble: Disassemble,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let (format, size, count) = match spec {
        Some(spec) => {
            let (format, size) = spec.resolve(state.format, state.size);
            state.count = spec.count;
            (format, size, spec.count)
        }
        None => {
            let count = if address.is_none() && state.count > 0 {
                state.count
            } else {
                1
            };
            state.count = count;
            (state.format, Some(state.size), count)
        }
    };
    if let Some(address) = address {
        state.next = Some(address);
    }
    let Some(start) = state.next else {
        return Err(Error::new("Argument required (starting display address).").into());
    };
    let unit = item_size(format, size, scope);
    let mut run = Run {
        format,
        size: unit,
        ty: item_type(format, unit),
        address: start,
        scope,
        disassemble,
        out,
        last: None,
    };
    let result = run.all(count);
    let (address, last, ty) = (run.address, run.last, run.ty);
    state.next = Some(address);
    result?;
    state.size = match format {
        's' => 'b',
        _ => size.unwrap_or('b'),
    };
    state.format = format;
    if let Some((address, bytes)) = last {
        publish(ty, address, bytes, scope)?;
    }
    Ok(())
}

fn item_size(format: char, size: Option<char>, scope: &dyn Scope) -> char {
    match (format, size) {
        ('i', _) | (_, None) => 'b',
        ('s', Some('g')) => {
            scope.warn("Unable to display strings with size 'g', using 'b' instead.");
            'b'
        }
        (_, Some(size)) => size,
    }
}

/// All digits of a word of up to 8 bytes: most of what is ever shown.
fn hexadecimal<'b>(bytes: &[u8], text: &'b mut [u8; 18]) -> &'b [u8] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    text[..2].copy_from_slice(b"0x");
    for (byte, pair) in bytes.iter().rev().zip(text[2..].chunks_exact_mut(2)) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    &text[..2 + 2 * bytes.len()]
}

/// Makes `$_` and `$__` of the item that was shown last.
fn publish(
    ty: Type,
    address: u64,
    bytes: Option<[u8; 8]>,
    scope: &mut dyn Scope,
) -> Result<(), Error> {
    scope.set_variable("_", Value::from_u64(ty.pointer(), address))?;
    let value = match bytes {
        Some(bytes) => {
            let contents = bytes[..ty.size() as usize].into();
            let place = Place::Memory(address);
            Value::at(ty.clone(), address).part(ty, place, Some(contents))
        }
        None => Value::void(),
    };
    scope.set_variable("__", value)?;
    Ok(())
}

struct Run<'a> {
    format: char,
    size: char,
    /// Of the next item.
    address: u64,
    scope: &'a mut dyn Scope,
    disassemble: Disassemble<'a>,
    out: &'a mut dyn Write,
    /// The type of an item.
    ty: Type,
    /// The item shown last: its address, and its bytes where gdb fetches them.
    last: Option<(u64, Option<[u8; 8]>)>,
}

impl Run<'_> {
    fn all(&mut self, count: i32) -> Result<(), Failure> {
        let mut left = count.unsigned_abs();
        let mut rewound = None;
        if count == i32::MIN {
            // It has no positive counterpart: gdb shows nothing.
            return Ok(());
        }
        if count < 0 {
            left = self.rewind(left)?;
            rewound = Some(match self.format {
                's' => self.address.wrapping_sub(size_bytes(self.size)),
                _ => self.address,
            });
        }
        let result = self.lines(left);
        if let (Ok(()), Some(address)) = (&result, rewound) {
            self.address = address;
        }
        result
    }

    fn lines(&mut self, mut left: u32) -> Result<(), Failure> {
        let per_line = match (self.format, self.size) {
            ('s' | 'i', _) => 1,
            (_, 'w') => 4,
            (_, 'g') => 2,
            _ => 8,
        };
        while left > 0 {
            if self.format == 'i' {
                let here = self.scope.registers().map(|registers| registers.pc());
                write!(
                    self.out,
                    "{}",
                    if here == Some(self.address) {
                        "=> "
                    } else {
                        "   "
                    }
                )?;
            }
            let symbol = linkage_symbolic(self.address, self.scope);
            write!(self.out, "{:#x}{symbol}:", self.address)?;
            for _ in 0..left.min(per_line) {
                self.out.write_all(b"\t")?;
                self.item()?;
            }
            left -= left.min(per_line);
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }

    fn item(&mut self) -> Result<(), Failure> {
        let address = self.address;
        let width = size_bytes(self.size);
        // Also when the item cannot be read, the next `x` starts behind it.
        self.address = address.wrapping_add(width);
        let mut bytes = None;
        match self.format {
            's' => {
                let (text, taken) = text_at(
                    self.scope,
                    address,
                    width as usize,
                    prefix(None, width as usize),
                    Charset::of_environment(),
                );
                self.address = address.wrapping_add(taken);
                write!(self.out, "{text}")?;
            }
            'i' => {
                let (length, text) = self.instruction(address)?;
                self.address = address.wrapping_add(length as u64);
                write!(self.out, "{text}")?;
            }
            letter => {
                check_letter(Some(letter))?;
                let mut word = [0; 8];
                let buffer = &mut word[..width as usize];
                self.scope.read(address, buffer).map_err(Error::from)?;
                if matches!(letter, 'x' | 'z') {
                    self.out.write_all(hexadecimal(buffer, &mut [0; 18]))?;
                } else {
                    let size = Some(self.size);
                    let text = format_scalar(buffer, &self.ty, letter, size, self.scope)?;
                    self.out.write_all(text.as_bytes())?;
                }
                bytes = Some(word);
            }
        }
        self.last = Some((address, bytes));
        Ok(())
    }

    fn instruction(&self, address: u64) -> Result<(usize, String), Error> {
        let bytes = read_available(self.scope, address, INSTRUCTION_MAX);
        let Some(first) = bytes.first() else {
            return Err(Error::Memory(address));
        };
        let symbol = |address| {
            self.scope
                .symbol_at(address)
                .map(|(name, offset)| match offset {
                    0 => name,
                    _ => format!("{name}+{offset}"),
                })
        };
        let decoded = (self.disassemble)(&bytes, address, &symbol);
        Ok(decoded.unwrap_or_else(|| (1, format!(".byte {first:#x}"))))
    }

    /// Goes back by `count` items; gives how many there are to show.
    fn rewind(&mut self, count: u32) -> Result<u32, Failure> {
        match self.format {
            'i' => {
                let behind = self.address.wrapping_sub(1);
                let symbol = linkage_symbolic(behind, self.scope);
                writeln!(
                    self.out,
                    "No line number information available for address {behind:#x}{symbol}"
                )?;
                Ok(0)
            }
            's' => Ok(self.rewind_strings(count)),
            _ => {
                let bytes = u64::from(count).wrapping_mul(size_bytes(self.size));
                self.address = self.address.wrapping_sub(bytes);
                Ok(count)
            }
        }
    }

    /// gdb's search for the zeros in front of strings, in chunks of 32 characters; a string longer
    /// than what is printed counts as several.
    fn rewind_strings(&mut self, count: u32) -> u32 {
        const CHUNK: u64 = 32;
        let width = size_bytes(self.size);
        let mut left = count;
        let mut start = self.address;
        let mut chunk_start = self.address;
        let mut counted = 0u64;
        while left > 0 {
            chunk_start = chunk_start.wrapping_sub(CHUNK * width);
            let chunk = self.readable_end(chunk_start, CHUNK * width);
            let units = chunk.len() as u64 / width;
            for index in 0..units {
                if left == 0 {
                    break;
                }
                let offset = (CHUNK - index - 1) * width;
                let from = chunk.len() as u64 - (index + 1) * width;
                let unit = &chunk[from as usize..(from + width) as usize];
                if unit.iter().all(|byte| *byte == 0) || counted == PRINT_MAX as u64 {
                    left -= 1;
                    start = chunk_start.wrapping_add(offset + width);
                    counted = 0;
                }
                counted += 1;
            }
            if units < CHUNK {
                start = start.wrapping_sub(counted * width);
                break;
            }
        }
        self.address = start;
        count - left
    }

    /// The readable bytes at the end of `length` bytes.
    fn readable_end(&self, address: u64, length: u64) -> Vec<u8> {
        let mut skip = 0;
        while skip < length {
            let mut buffer = vec![0; (length - skip) as usize];
            match self.scope.read(address.wrapping_add(skip), &mut buffer) {
                Ok(()) => return buffer,
                Err(_) => skip += 1,
            }
        }
        Vec::new()
    }
}

/// The type that gdb gives an item; `$_` points to it.
pub(crate) fn item_type(format: char, size: char) -> Type {
    match (format, size) {
        ('s', 'h') => Type::named("char16_t", 2, Kind::Char { signed: false }),
        ('s', 'w') => Type::named("char32_t", 4, Kind::Char { signed: false }),
        (_, 'b') => Type::integer("int8_t", 1, true),
        (_, 'h') => Type::integer("int16_t", 2, true),
        (_, 'w') => Type::integer("int32_t", 4, true),
        _ => Type::integer("int64_t", 8, true),
    }
}
