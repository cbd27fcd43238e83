//! The module's functions as JavaScript sees them: a request is written into the module's memory, an answer is read from it.

use crate::Session;

/// A page's session, the request that is being written, and the last answer.
#[derive(Default)]
pub struct Page {
    session: Session,
    request: Vec<u8>,
    answer: String,
}

/// Largest request \[bytes\]: a scenario is a text that somebody has written.
const MOST: usize = 16 << 20;

/// Opens a page. It lasts as long as the module.
#[no_mangle]
pub extern "C" fn fanin_open() -> *mut Page {
    Box::into_raw(Box::default())
}

/// Room for a request of so many bytes; null where that is more than a request may have.
///
/// # Safety
/// `page` is of [`fanin_open`], and nobody else uses it meanwhile.
#[no_mangle]
pub unsafe extern "C" fn fanin_room(page: *mut Page, bytes: usize) -> *mut u8 {
    if bytes > MOST {
        return std::ptr::null_mut();
    }
    // SAFETY: the caller says so.
    let page = unsafe { &mut *page };
    page.request = vec![0; bytes];
    page.request.as_mut_ptr()
}

/// Answers the request in the room; the answer stays where it is until the next call.
///
/// # Safety
/// `page` is of [`fanin_open`], and nobody else uses it meanwhile.
#[no_mangle]
pub unsafe extern "C" fn fanin_call(page: *mut Page) -> *const u8 {
    // SAFETY: the caller says so.
    let page = unsafe { &mut *page };
    let request = std::mem::take(&mut page.request);
    page.answer = page.session.call(&String::from_utf8_lossy(&request));
    page.answer.as_ptr()
}

/// Bytes of the last answer.
///
/// # Safety
/// `page` is of [`fanin_open`], and nobody else uses it meanwhile.
#[no_mangle]
pub unsafe extern "C" fn fanin_answer_bytes(page: *const Page) -> usize {
    // SAFETY: the caller says so.
    unsafe { &*page }.answer.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_goes_in_and_an_answer_comes_out() {
        let page = fanin_open();
        let request = br#"{"do": "version"}"#;
        // SAFETY: this page, this thread; the room has as many bytes as were asked for.
        let answer = unsafe {
            std::slice::from_raw_parts_mut(fanin_room(page, request.len()), request.len()).copy_from_slice(request);
            let at = fanin_call(page);
            std::slice::from_raw_parts(at, fanin_answer_bytes(page)).to_vec()
        };
        assert_eq!(String::from_utf8(answer).unwrap(), format!(r#"{{"version":"{}"}}"#, env!("CARGO_PKG_VERSION")));
        // SAFETY: as above; the page is not used any more afterwards.
        unsafe {
            assert!(fanin_room(page, MOST + 1).is_null());
            drop(Box::from_raw(page));
        }
    }
}
