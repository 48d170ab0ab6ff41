//! Values: a type, a place, and the bytes once they were needed.

use std::sync::Arc;

use crate::arch::Register;

use super::error::Error;
use super::scope::Scope;
use super::types::Type;

/// Where a value lives; where an assignment to it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nowhere: the result of an operation. Not an lvalue.
    None,
    /// At an address.
    Memory(u64),
    /// In a general register, from byte `offset` of it (`$ah` is byte 1 of rax).
    Register {
        /// Which one.
        register: Register,
        /// The first byte.
        offset: u8,
    },
    /// In an x87, SSE or AVX register by gdb's name, from byte `offset` of it.
    Vector {
        /// The register's name, as [`Scope::vector_register`] takes it.
        name: &'static str,
        /// The first byte.
        offset: u32,
    },
    /// In a convenience variable, from byte `offset` of it.
    Variable {
        /// Its name without the `$`.
        name: Arc<str>,
        /// The first byte.
        offset: u32,
    },
    /// Some bits of what is at a place.
    Bits {
        /// Where the bytes are that hold them.
        of: Arc<Place>,
        /// How many bytes hold them.
        bytes: u32,
        /// The lowest bit, counted from the first byte's lowest.
        bit: u32,
        /// How many.
        bits: u32,
    },
}

/// A value: its bytes are read when they are asked for.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    ty: Type,
    place: Place,
    contents: Option<Arc<[u8]>>,
    /// Values out of the history can be looked at, not assigned to.
    frozen: bool,
}

impl Value {
    /// What is at a place, not read yet.
    pub(crate) fn lazy(ty: Type, place: Place) -> Value {
        Value {
            ty,
            place,
            contents: None,
            frozen: false,
        }
    }

    /// What is at an address, not read yet.
    pub(crate) fn at(ty: Type, address: u64) -> Value {
        Value::lazy(ty, Place::Memory(address))
    }

    /// A value that is nowhere in the target.
    pub(crate) fn from_bytes(ty: Type, bytes: impl Into<Arc<[u8]>>) -> Value {
        Value {
            ty,
            place: Place::None,
            contents: Some(bytes.into()),
            frozen: false,
        }
    }

    /// An integer or pointer of this type; `number` is cut to the type's size.
    pub(crate) fn from_u64(ty: Type, number: u64) -> Value {
        Value::from_u128(ty, number as i64 as i128 as u128)
    }

    /// As [`Value::from_u64`], for 16-byte integers too.
    pub(crate) fn from_u128(ty: Type, number: u128) -> Value {
        let size = (ty.size() as usize).min(16);
        Value::from_bytes(ty, &number.to_le_bytes()[..size])
    }

    /// The value `void`.
    pub(crate) fn void() -> Value {
        Value::from_bytes(Type::void(), &[0u8][..])
    }

    /// Its type.
    pub(crate) fn ty(&self) -> &Type {
        &self.ty
    }

    /// Where it is.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Its address, if it is in memory.
    pub(crate) fn address(&self) -> Option<u64> {
        match self.place {
            Place::Memory(address) => Some(address),
            _ => None,
        }
    }

    /// Whether an assignment to it has a place to go.
    pub(crate) fn is_lvalue(&self) -> bool {
        self.place != Place::None
    }

    /// Whether it may be assigned to (values of the history may not).
    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// The same bytes at the same place as another type.
    pub(crate) fn with_type(&self, ty: Type) -> Value {
        Value { ty, ..self.clone() }
    }

    /// The bytes, read now if they were not before.
    pub(crate) fn bytes(&self, scope: &dyn Scope) -> Result<Arc<[u8]>, Error> {
        match &self.contents {
            Some(bytes) => Ok(bytes.clone()),
            None => super::place::fetch(&self.place, &self.ty, scope),
        }
    }

    /// The same value with its bytes read: what the history and variables keep.
    pub(crate) fn fetched(&self, scope: &dyn Scope) -> Result<Value, Error> {
        Ok(Value {
            contents: Some(self.bytes(scope)?),
            ..self.clone()
        })
    }

    /// The same value, read and no longer assignable: what goes into the history.
    pub(crate) fn for_history(&self, scope: &dyn Scope) -> Result<Value, Error> {
        Ok(Value {
            frozen: true,
            ..self.fetched(scope)?
        })
    }

    /// With other contents, at another place.
    pub(crate) fn part(&self, ty: Type, place: Place, contents: Option<Arc<[u8]>>) -> Value {
        Value {
            ty,
            place,
            contents,
            frozen: self.frozen,
        }
    }

    /// The bytes if they were read already.
    pub(crate) fn contents(&self) -> Option<&Arc<[u8]>> {
        self.contents.as_ref()
    }

    /// Its number, extended by its sign: integers, characters, `bool`, pointers, enumerations,
    /// flags; floats are truncated.
    pub(crate) fn as_i128(&self, scope: &dyn Scope) -> Result<i128, Error> {
        super::number::to_i128(&self.bytes(scope)?, &self.ty)
    }

    /// As [`Value::as_i128`], the low 64 bits: an address, a count. Arrays and functions give
    /// their address.
    pub(crate) fn as_u64(&self, scope: &dyn Scope) -> Result<u64, Error> {
        super::number::as_address(self, scope)
    }

    /// Whether it counts as true in a condition.
    pub(crate) fn is_true(&self, scope: &dyn Scope) -> Result<bool, Error> {
        super::number::is_true(self, scope)
    }
}
