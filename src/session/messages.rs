//! What a named probe knows about a hit, as it is shown.

use super::Session;
use super::named::Place;
use super::plan::Returns;
use super::view::View;
use crate::engine::protocol::Tid;
use crate::lang::{self, Kind, Scope};
use crate::probe::named::{Shown, shown};
use crate::record::wire::Record;
use crate::record::{Hit, Message};

/// Values of the pieces of a place.
#[derive(Debug, Default)]
pub struct Known {
    /// Where the message is.
    message: Option<Message>,
    /// All of them as text.
    values: Vec<(String, String)>,
}

impl Known {
    /// Puts them into a hit, in the place of the registers where those would be shown.
    pub(super) fn tell(self, bodiless: bool, hit: &mut Hit) {
        if bodiless && !self.values.is_empty() {
            hit.args = self.values;
        }
        hit.msg = self.message;
    }
}

impl Session {
    /// What a record says.
    pub(super) fn known_in(
        &mut self,
        index: usize,
        record: &Record,
        place: &Place,
        shown: &[Shown],
        returns: &Returns,
    ) -> Known {
        let Some(target) = self.targets.get(index).filter(|_| !shown.is_empty()) else {
            return Known::default();
        };
        let mut view = View::of_record(
            record,
            returns.clone(),
            &target.images,
            &mut self.variables,
            self.keeper.as_mut(),
        );
        known(&mut view, place, shown)
    }

    /// What is there while a thread of the current process stands at a probe's place.
    pub(super) fn known_now(&mut self, tid: Tid, number: u32) -> Known {
        let place = self.place_where(tid, number);
        let Some(pieces) = place.pieces.clone() else {
            return Known::default();
        };
        self.naming(place.clone(), |session| {
            session.with_view_of(Some(tid), |view, _| match shown(&pieces, view) {
                Ok(list) => known(view, &place, &list),
                Err(_) => Known::default(),
            })
        })
    }
}

fn known(view: &mut View<'_>, place: &Place, list: &[Shown]) -> Known {
    let number = |view: &mut View<'_>, name: &str| {
        let piece = list.iter().find(|piece| piece.name == name)?;
        let value = lang::evaluate(&piece.expr, view).ok()?;
        value.as_u64(view).ok()
    };
    let address = number(view, "_msg.address");
    let message = address.map(|address| Message {
        codec: place
            .pieces
            .as_ref()
            .and_then(|pieces| pieces.codec.clone()),
        address,
        length: number(view, "_msg.length"),
    });
    let values = list
        .iter()
        .map(|piece| {
            let text = text(piece, view).unwrap_or_else(|error| format!("<{error}>"));
            (piece.title.clone(), text)
        })
        .collect();
    Known { message, values }
}

/// A value as gdb shows it; of a string only the string.
fn text(piece: &Shown, view: &mut View<'_>) -> Result<String, lang::Error> {
    let value = lang::evaluate(&piece.expr, view)?.fetched(view as &dyn Scope)?;
    let text = lang::print_value(&value, piece.letter, view)?;
    let string = match (value.ty().kind(), text.find('"')) {
        (Kind::Pointer(_), Some(at)) if piece.letter.is_none() => text[at..].to_string(),
        _ => text,
    };
    Ok(string)
}
