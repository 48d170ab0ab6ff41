//! Reading and writing the places where values live.

use std::sync::Arc;

use super::error::Error;
use super::scope::Scope;
use super::types::Type;
use super::value::Place;

/// gdb's `max-value-size`: larger values are not read.
const MOST_BYTES: u64 = 65536;

/// The bytes of a value of type `ty` at `place`.
pub(crate) fn fetch(place: &Place, ty: &Type, scope: &dyn Scope) -> Result<Arc<[u8]>, Error> {
    let size = ty.size();
    if size > MOST_BYTES {
        return Err(Error::new(match ty.own_name() {
            Some(name) => format!(
                "value of type `{name}' requires {size} bytes, which is more than max-value-size"
            ),
            None => format!("value requires {size} bytes, which is more than max-value-size"),
        }));
    }
    read(place, size as usize, scope)
}

fn no_registers() -> Error {
    Error::new("No registers.")
}

fn read(place: &Place, size: usize, scope: &dyn Scope) -> Result<Arc<[u8]>, Error> {
    match place {
        Place::None => Err(Error::new("The value is not known here.")),
        Place::Memory(address) => {
            let mut bytes = vec![0; size];
            if size > 0 {
                scope.read(*address, &mut bytes)?;
            }
            Ok(bytes.into())
        }
        Place::Register { register, offset } => {
            let word = scope.registers().ok_or_else(no_registers)?.get(*register);
            slice(&word.to_le_bytes(), *offset as usize, size)
        }
        Place::Vector { name, offset } => {
            let bytes = scope.vector_register(name).ok_or_else(no_registers)?;
            slice(&bytes, *offset as usize, size)
        }
        Place::Variable { name, offset } => {
            let value = scope.variable(name).ok_or_else(|| Error::new("void"))?;
            slice(&value.bytes(scope)?, *offset as usize, size)
        }
        Place::Bits {
            of,
            bytes,
            bit,
            bits,
        } => {
            let whole = read(of, *bytes as usize, scope)?;
            let number = little(&whole) >> bit & mask(*bits);
            slice(&number.to_le_bytes(), 0, size)
        }
    }
}

fn slice(bytes: &[u8], offset: usize, size: usize) -> Result<Arc<[u8]>, Error> {
    let part = bytes.get(offset..).unwrap_or(&[]);
    let mut part = part[..part.len().min(size)].to_vec();
    part.resize(size, 0);
    Ok(part.into())
}

fn little(bytes: &[u8]) -> u128 {
    let mut wide = [0; 16];
    let n = bytes.len().min(16);
    wide[..n].copy_from_slice(&bytes[..n]);
    u128::from_le_bytes(wide)
}

fn mask(bits: u32) -> u128 {
    u128::MAX.checked_shr(128 - bits.min(128)).unwrap_or(0)
}

/// Puts `bytes` to `place`.
pub(crate) fn store(place: &Place, bytes: &[u8], scope: &mut dyn Scope) -> Result<(), Error> {
    match place {
        Place::None => Err(Error::new("Left operand of assignment is not an lvalue.")),
        Place::Memory(address) => Ok(scope.write(*address, bytes)?),
        Place::Register { register, offset } => {
            let old = scope.registers().ok_or_else(no_registers)?.get(*register);
            let mut word = old.to_le_bytes();
            overlay(&mut word, *offset as usize, bytes);
            Ok(scope.set_register(*register, u64::from_le_bytes(word))?)
        }
        Place::Vector { name, offset } => {
            let mut whole = scope.vector_register(name).ok_or_else(no_registers)?;
            overlay(&mut whole, *offset as usize, bytes);
            Ok(scope.set_vector_register(name, &whole)?)
        }
        Place::Variable { name, offset } => {
            let value = scope.variable(name).ok_or_else(|| Error::new("void"))?;
            let mut whole = value.bytes(scope)?.to_vec();
            overlay(&mut whole, *offset as usize, bytes);
            let changed = value.part(
                value.ty().clone(),
                value.place().clone(),
                Some(whole.into()),
            );
            Ok(scope.set_variable(name, changed)?)
        }
        Place::Bits {
            of,
            bytes: size,
            bit,
            bits,
        } => {
            let whole = little(&read(of, *size as usize, scope)?);
            let field = mask(*bits) << bit;
            let new = whole & !field | little(bytes) << bit & field;
            store(of, &new.to_le_bytes()[..(*size as usize).min(16)], scope)
        }
    }
}

fn overlay(whole: &mut [u8], offset: usize, bytes: &[u8]) {
    for (to, from) in whole.iter_mut().skip(offset).zip(bytes) {
        *to = *from;
    }
}

/// The place `by` bytes further on.
pub(crate) fn advance(place: &Place, by: u64) -> Place {
    match place.clone() {
        Place::Memory(address) => Place::Memory(address.wrapping_add(by)),
        Place::Register { register, offset } => Place::Register {
            register,
            offset: offset.wrapping_add(by as u8),
        },
        Place::Vector { name, offset } => Place::Vector {
            name,
            offset: offset.wrapping_add(by as u32),
        },
        Place::Variable { name, offset } => Place::Variable {
            name,
            offset: offset.wrapping_add(by as u32),
        },
        other => other,
    }
}
