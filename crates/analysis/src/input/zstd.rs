//! Data that zstd has packed: natively by its own C library, in a page by a decoder in Rust, which is three to five times slower.

pub use decoder::{decoder, Decoder};

/// Largest window as a power of two [bytes]: what its own tools accept unless they are asked for more.
pub const WINDOW: u32 = 27;

#[cfg(not(target_family = "wasm"))]
mod decoder {
    use std::io::{BufRead, Result};

    /// One frame after another.
    pub type Decoder<R> = zstd::stream::read::Decoder<'static, R>;

    /// Unpacks what `input` gives; refuses windows above `window`, a power of two.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn decoder<R: BufRead>(input: R, window: u32) -> Result<Decoder<R>> {
        let mut decoder = Decoder::with_buffer(input)?;
        decoder.window_log_max(window)?;
        Ok(decoder)
    }
}

#[cfg(target_family = "wasm")]
mod decoder {
    use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
    use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
    use std::io::{BufRead, Error, ErrorKind, Read, Result};

    /// Bytes that are unpacked at once, about.
    const STEP: usize = 1 << 17;

    /// One frame after another.
    pub struct Decoder<R> {
        input: R,
        frame: Box<FrameDecoder>,
        inside: bool,
        /// The data end inside a block; what was before is still to be given.
        cut: bool,
    }

    /// An empty block, the last one, and a checksum: what is before it then comes out.
    const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

    /// Unpacks what `input` gives. The largest window is that of the decoder itself, 100 MB.
    ///
    /// # Errors
    /// None.
    pub fn decoder<R: BufRead>(input: R, _: u32) -> Result<Decoder<R>> {
        Ok(Decoder { input, frame: Box::new(FrameDecoder::new()), inside: false, cut: false })
    }

    impl<R> Decoder<R> {
        pub fn get_ref(&self) -> &R {
            &self.input
        }
    }

    /// The decoder's error; of an end before that of the data as such.
    fn failure(error: FrameDecoderError) -> Error {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(this) = cause {
            if this.downcast_ref::<Error>().is_some_and(|inner| inner.kind() == ErrorKind::UnexpectedEof) {
                return ErrorKind::UnexpectedEof.into();
            }
            cause = this.source();
        }
        Error::other(error.to_string())
    }

    impl<R: BufRead> Decoder<R> {
        /// Begins the next frame; false at the end.
        fn begin(&mut self) -> Result<bool> {
            loop {
                if self.input.fill_buf()?.is_empty() {
                    return Ok(false);
                }
                match self.frame.reset(&mut self.input) {
                    Ok(()) => {
                        self.inside = true;
                        return Ok(true);
                    }
                    Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                        let length = u64::from(length);
                        if std::io::copy(&mut self.input.by_ref().take(length), &mut std::io::sink())? < length {
                            return Err(ErrorKind::UnexpectedEof.into());
                        }
                    }
                    Err(error) => return Err(failure(error)),
                }
            }
        }
    }

    impl<R: BufRead> Read for Decoder<R> {
        fn read(&mut self, buf: &mut [u8]) -> Result<usize> {
            if buf.is_empty() {
                return Ok(0);
            }
            loop {
                if !self.inside && !self.begin()? {
                    return Ok(0);
                }
                while self.frame.can_collect() == 0 && !self.frame.is_finished() {
                    let step = BlockDecodingStrategy::UptoBytes(STEP);
                    match self.frame.decode_blocks(&mut self.input, step).map_err(failure) {
                        Ok(_) => {}
                        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                            self.cut = true;
                            self.frame.decode_blocks(&LAST_BLOCK[..], BlockDecodingStrategy::All).map_err(failure)?;
                        }
                        Err(error) => return Err(error),
                    }
                }
                let read = self.frame.read(buf)?;
                if read > 0 {
                    return Ok(read);
                }
                if self.cut {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                if let (Some(said), Some(found)) = (self.frame.get_checksum_from_data(), self.frame.get_calculated_checksum()) {
                    if said != found {
                        return Err(Error::other("Restored data doesn't match checksum"));
                    }
                }
                self.inside = false;
            }
        }
    }
}
