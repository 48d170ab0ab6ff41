//! How an input is changed.

/// Inputs grow by no more than this, bytes.
const GROWTH: usize = 64 << 10;

/// Numbers around which things go wrong.
const NUMBERS: [u64; 22] = [
    0,
    1,
    2,
    7,
    8,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0x8000,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    1 << 40,
    0x7fff_ffff_ffff_f000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// Random numbers of a seed (splitmix64: neighbouring seeds have nothing in common).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number below `end`, 0 if that is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        match end {
            0 => 0,
            end => (self.next() % end as u64) as usize,
        }
    }

    pub(crate) fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    fn pick<'t, T>(&mut self, of: &'t [T]) -> Option<&'t T> {
        of.get(self.below(of.len()))
    }

    /// Small ones are more likely.
    fn length(&mut self, most: usize) -> usize {
        let bits = self.below(17);
        self.below((1 << bits).min(most) + 1)
    }
}

/// One input of the corpus with some changes; or words alone.
pub(super) fn change(
    random: &mut Random,
    corpus: &[Vec<u8>],
    places: &[Vec<usize>],
    words: &[&str],
) -> Vec<u8> {
    if !words.is_empty() && random.one_in(8) {
        return of_words(random, words);
    }
    let which = random.below(corpus.len());
    let mut input = corpus.get(which).cloned().unwrap_or_default();
    let places = places.get(which).map_or(&[][..], Vec::as_slice);
    let most = input.len() + GROWTH;
    for _ in 0..=random.below(8) {
        let at = match random.one_in(8) {
            false if !places.is_empty() => places[random.below(places.len())].min(input.len()),
            _ => random.below(input.len() + 1),
        };
        // What moves the rest matters less where places are known.
        let kinds = if places.is_empty() { 13 } else { 5 };
        match random.below(kinds) {
            kind @ 0..=4 => overwrite(random, kind, &mut input, at),
            kind => rearrange(random, kind, &mut input, at, corpus, words),
        }
        input.truncate(most);
    }
    input
}

fn of_words(random: &mut Random, words: &[&str]) -> Vec<u8> {
    let mut text = Vec::new();
    for _ in 0..=random.below(24) {
        if let Some(word) = random.pick(words) {
            text.extend_from_slice(word.as_bytes());
        }
        if !random.one_in(4) {
            text.push(if random.one_in(6) { b'\n' } else { b' ' });
        }
    }
    text
}

/// Changes bytes where they are.
fn overwrite(random: &mut Random, kind: usize, input: &mut [u8], at: usize) {
    let Some(byte) = input.get_mut(at) else {
        return;
    };
    match kind {
        0 => *byte ^= 1 << random.below(8),
        1 => *byte = NUMBERS[random.below(8)] as u8,
        2 => *byte = random.next() as u8,
        _ => {
            let width = 1 << random.below(4);
            let mut number = NUMBERS[random.below(NUMBERS.len())];
            if random.one_in(3) {
                number = number.wrapping_add(random.next() % 32).wrapping_sub(16);
            }
            for (byte, new) in input[at..].iter_mut().zip(number.to_le_bytes()).take(width) {
                *byte = new;
            }
        }
    }
}

/// Changes what follows what.
fn rearrange(
    random: &mut Random,
    kind: usize,
    input: &mut Vec<u8>,
    at: usize,
    corpus: &[Vec<u8>],
    words: &[&str],
) {
    let range = at..at + random.length(input.len() - at);
    match kind {
        5 => drop(input.drain(range)),
        6 => input.truncate(at),
        7 => {
            let piece = input[range].to_vec();
            insert(input, at, &piece);
        }
        // Nested or repeated many times.
        8 => {
            let piece = input[range].to_vec();
            let times = random.length(GROWTH / piece.len().max(1));
            insert(input, at, &piece.repeat(times));
        }
        9 => {
            let other = random.pick(corpus).cloned().unwrap_or_default();
            let from = random.below(other.len() + 1);
            let to = from + random.length(other.len() - from);
            insert(input, at, &other[from..to]);
        }
        10 => number(random, input, at),
        _ => match random.pick(words) {
            Some(word) => {
                let times = if random.one_in(8) {
                    random.length(4000)
                } else {
                    1
                };
                insert(input, at, word.repeat(times).as_bytes());
            }
            None => {
                let bytes: Vec<u8> = (0..random.length(64))
                    .map(|_| random.next() as u8)
                    .collect();
                insert(input, at, &bytes);
            }
        },
    }
}

fn insert(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    drop(input.splice(at..at, bytes.iter().copied()));
}

/// Writes another number over the next one in a text.
fn number(random: &mut Random, input: &mut Vec<u8>, at: usize) {
    let Some(from) = input[at..].iter().position(u8::is_ascii_digit) else {
        return;
    };
    let from = at + from;
    let digits = input[from..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    let to = from + digits.count();
    let number = NUMBERS[random.below(NUMBERS.len())];
    let text = match random.below(4) {
        0 => format!("{number:#x}"),
        1 => format!("-{number}"),
        2 => format!("{number}{}", random.next()),
        _ => number.to_string(),
    };
    drop(input.splice(from..to, text.bytes()));
}
