//! Convenience variables and the value history.
//!
//! A variable that a compiled program uses lives in memory shared with the keeper, as 64 bits of
//! the integer type that it had when the program was compiled. All others live here.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use crate::lang::{Type, Value};
use crate::record::shared::{Counters, VARIABLES};

/// A variable that programs use.
#[derive(Debug, Clone)]
pub struct Shared {
    /// Its place in the shared memory.
    pub index: u16,
    /// What its 64 bits mean.
    pub ty: Type,
}

/// All variables and the history.
#[derive(Debug, Default, Clone)]
pub struct Variables {
    values: HashMap<String, Value>,
    shared: HashMap<String, Shared>,
    history: Vec<Value>,
    /// A shared variable got another type: programs that use it are out of date.
    pub retyped: bool,
}

impl Variables {
    /// The value, without the `$`; `None` is void.
    pub fn get(&self, name: &str, counters: Option<&Counters>) -> Option<Value> {
        if let (Some(shared), Some(counters)) = (self.shared.get(name), counters) {
            let bits = counters.variable(shared.index).load(Ordering::Relaxed);
            return Some(Value::from_u64(shared.ty.clone(), bits));
        }
        self.values.get(name).cloned()
    }

    /// The names of those that have a value.
    pub fn names(&self) -> Vec<String> {
        self.values
            .keys()
            .chain(self.shared.keys())
            .cloned()
            .collect()
    }

    /// Changes it. The value's contents have been read already.
    pub fn set(&mut self, name: &str, value: Value, counters: Option<&Counters>) {
        if let (Some(shared), Some(counters)) = (self.shared.get_mut(name), counters) {
            match integer(&value) {
                Some(bits) => {
                    if shared.ty != *value.ty() {
                        shared.ty = value.ty().clone();
                        self.retyped = true;
                    }
                    let place = counters.variable(shared.index);
                    place.store(bits, Ordering::Relaxed);
                    return;
                }
                None => {
                    self.shared.remove(name);
                    self.retyped = true;
                }
            }
        }
        self.values.insert(name.into(), value);
    }

    /// The shared place of a variable as a value of type `ty`, made now if it has none. `None` for
    /// one that has another type or is no integer, or when there is no place.
    pub fn share(&mut self, name: &str, ty: &Type, counters: &Counters) -> Option<u16> {
        if let Some(shared) = self.shared.get(name) {
            return (shared.ty == *ty).then_some(shared.index);
        }
        let bits = match self.values.get(name) {
            Some(value) if value.ty() == ty => integer(value)?,
            Some(_) => return None,
            None => 0,
        };
        let index = (0..VARIABLES as u16).find(|i| self.shared.values().all(|s| s.index != *i))?;
        counters.variable(index).store(bits, Ordering::Relaxed);
        let ty = ty.clone();
        self.shared.insert(name.into(), Shared { index, ty });
        Some(index)
    }

    /// All of them that have a value, by name.
    pub fn all(&self, counters: Option<&Counters>) -> Vec<(String, Value)> {
        let mut names: Vec<&String> = self.values.keys().chain(self.shared.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let value = |name: &&String| Some(((*name).clone(), self.get(name, counters)?));
        names.iter().filter_map(value).collect()
    }

    /// The name and type of a shared variable by its place.
    pub fn at(&self, index: u16) -> Option<(&str, &Type)> {
        let found = self.shared.iter().find(|(_, s)| s.index == index)?;
        Some((found.0, &found.1.ty))
    }

    /// The type of a variable that programs use.
    pub fn shared_type(&self, name: &str) -> Option<&Type> {
        self.shared.get(name).map(|s| &s.ty)
    }

    /// Value number `number`, from 1.
    pub fn history(&self, number: usize) -> Option<Value> {
        self.history.get(number.checked_sub(1)?).cloned()
    }

    /// How many values the history holds.
    pub fn history_length(&self) -> usize {
        self.history.len()
    }

    /// Appends; gives the number.
    pub fn push_history(&mut self, value: Value) -> usize {
        self.history.push(value);
        self.history.len()
    }
}

/// The 64 bits of an integer value, extended by its sign.
pub(super) fn integer(value: &Value) -> Option<u64> {
    let bytes = value.contents()?;
    let size = bytes.len();
    if !value.ty().is_integral() || size == 0 || size > 8 {
        return None;
    }
    let mut word = [0; 8];
    word[..size].copy_from_slice(bytes);
    let shift = 64 - 8 * size as u32;
    let bits = u64::from_le_bytes(word) << shift;
    Some(if value.ty().is_signed() {
        (bits as i64 >> shift) as u64
    } else {
        bits >> shift
    })
}
