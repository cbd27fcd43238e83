//! The module's functions as JavaScript sees them: a request is written into the module's memory, an answer is read from it.

use crate::Session;
use std::cell::RefCell;

/// One page is one user: its session, the request that is being written and the last answer.
#[derive(Default)]
struct Room {
    session: Session,
    request: Vec<u8>,
    answer: String,
}

thread_local! {
    static ROOM: RefCell<Room> = RefCell::default();
}

/// Largest request \[bytes\]: a scenario is a text that somebody has written.
const MOST: usize = 16 << 20;

/// Room for a request of so many bytes; null where that is more than a request may have.
#[no_mangle]
pub extern "C" fn fanin_room(bytes: usize) -> *mut u8 {
    if bytes > MOST {
        return std::ptr::null_mut();
    }
    ROOM.with_borrow_mut(|room| {
        room.request = vec![0; bytes];
        room.request.as_mut_ptr()
    })
}

/// Answers the request in the room; the answer stays where it is until the next call.
#[no_mangle]
pub extern "C" fn fanin_call() -> *const u8 {
    ROOM.with_borrow_mut(|room| {
        let request = std::mem::take(&mut room.request);
        room.answer = room.session.call(&String::from_utf8_lossy(&request));
        room.answer.as_ptr()
    })
}

/// Bytes of the last answer.
#[no_mangle]
pub extern "C" fn fanin_answer_bytes() -> usize {
    ROOM.with_borrow(|room| room.answer.len())
}
