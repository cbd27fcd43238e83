//! Tables of FlatBuffers, as Arrow's messages are: a walk that allocates nothing and never leaves its bytes.
//!
//! The format: flatbuffers.dev, "FlatBuffer Internals" (tables, vtables, vectors, strings).

/// The bytes ended, or are no FlatBuffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

pub type Walked<T> = Result<T, Broken>;

/// A FlatBuffers table at some place in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Flat<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Place of the table of field offsets (vtable), and its length.
    fields: usize,
    length: usize,
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Walked<[u8; N]> {
    bytes.get(at..).and_then(<[u8]>::first_chunk).copied().ok_or(Broken)
}

fn u32_at(bytes: &[u8], at: usize) -> Walked<usize> {
    array(bytes, at).map(|b| u32::from_le_bytes(b) as usize)
}

impl<'a> Flat<'a> {
    /// The table that a message is.
    pub fn root(bytes: &'a [u8]) -> Walked<Self> {
        Self::at(bytes, u32_at(bytes, 0)?)
    }

    fn at(bytes: &'a [u8], at: usize) -> Walked<Self> {
        let back = i64::from(i32::from_le_bytes(array(bytes, at)?));
        let fields = i64::try_from(at).ok().and_then(|at| at.checked_sub(back)).and_then(|f| usize::try_from(f).ok());
        let fields = fields.ok_or(Broken)?;
        let length = usize::from(u16::from_le_bytes(array(bytes, fields)?));
        if length < 4 || bytes.len() < fields.saturating_add(length) {
            return Err(Broken);
        }
        Ok(Flat { bytes, at, fields, length })
    }

    /// Place of a field's value; `None`: the table lacks it.
    fn field(&self, id: usize) -> Walked<Option<usize>> {
        let entry = 4 + 2 * id;
        if entry + 2 > self.length {
            return Ok(None);
        }
        let offset = usize::from(u16::from_le_bytes(array(self.bytes, self.fields + entry)?));
        Ok((offset > 0).then(|| self.at.saturating_add(offset)))
    }

    /// Place that a field points to; `None`: the table lacks it.
    fn target(&self, id: usize) -> Walked<Option<usize>> {
        let Some(at) = self.field(id)? else { return Ok(None) };
        let target = u32_at(self.bytes, at)?.checked_add(at).ok_or(Broken)?;
        Ok(Some(target))
    }

    pub fn byte(&self, id: usize, otherwise: u8) -> Walked<u8> {
        self.field(id)?.map_or(Ok(otherwise), |at| array::<1>(self.bytes, at).map(|b| b[0]))
    }

    pub fn short(&self, id: usize, otherwise: i16) -> Walked<i16> {
        self.field(id)?.map_or(Ok(otherwise), |at| array(self.bytes, at).map(i16::from_le_bytes))
    }

    pub fn int(&self, id: usize, otherwise: i32) -> Walked<i32> {
        self.field(id)?.map_or(Ok(otherwise), |at| array(self.bytes, at).map(i32::from_le_bytes))
    }

    pub fn long(&self, id: usize) -> Walked<i64> {
        self.field(id)?.map_or(Ok(0), |at| array(self.bytes, at).map(i64::from_le_bytes))
    }

    pub fn table(&self, id: usize) -> Walked<Option<Flat<'a>>> {
        self.target(id)?.map(|at| Self::at(self.bytes, at)).transpose()
    }

    /// Begin and count of a vector whose elements take `size` bytes each, all of which are there.
    fn vector(&self, id: usize, size: usize) -> Walked<(usize, usize)> {
        let Some(at) = self.target(id)? else { return Ok((0, 0)) };
        let count = u32_at(self.bytes, at)?;
        if count.checked_mul(size).is_none_or(|bytes| bytes > self.bytes.len().saturating_sub(at + 4)) {
            return Err(Broken);
        }
        Ok((at + 4, count))
    }

    pub fn text(&self, id: usize) -> Walked<String> {
        let (begin, length) = self.vector(id, 1)?;
        Ok(String::from_utf8_lossy(&self.bytes[begin..begin + length]).into_owned())
    }

    /// A vector of tables.
    pub fn tables(&self, id: usize) -> Walked<impl Iterator<Item = Walked<Flat<'a>>>> {
        let (begin, count) = self.vector(id, 4)?;
        let bytes = self.bytes;
        Ok((0..count).map(move |i| {
            let at = begin + 4 * i;
            Self::at(bytes, u32_at(bytes, at)?.checked_add(at).ok_or(Broken)?)
        }))
    }

    /// A vector of structures of `N` numbers of 64 bits.
    pub fn longs<const N: usize>(&self, id: usize) -> Walked<impl ExactSizeIterator<Item = [i64; N]> + 'a> {
        let (begin, count) = self.vector(id, 8 * N)?;
        let bytes = &self.bytes[begin..begin + 8 * N * count];
        let number = |part: &[u8]| part.first_chunk().map_or(0, |b| i64::from_le_bytes(*b));
        Ok(bytes.chunks_exact(8 * N).map(move |part| std::array::from_fn(|i| number(&part[8 * i..]))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table with a byte 7 (field 0), a long (field 2), a text (field 3) and a vector of longs (field 4).
    fn bytes() -> Vec<u8> {
        let mut out = vec![0; 4];
        // The fields' places: length of it, length of the table, places.
        out.extend([14_u16, 24, 4, 0, 8, 16, 20].iter().flat_map(|v| v.to_le_bytes()));
        let table = out.len() as u32 + 2;
        out.extend([0; 2]);
        out[..4].copy_from_slice(&table.to_le_bytes());
        out.extend((table as i32 - 4).to_le_bytes());
        out.extend([7, 0, 0, 0]);
        out.extend((-5_i64).to_le_bytes());
        out.extend(8_u32.to_le_bytes());
        out.extend(12_u32.to_le_bytes());
        out.extend([&3_u32.to_le_bytes()[..], b"abc\0"].concat());
        out.extend(2_u32.to_le_bytes());
        out.extend([1_i64, 2].iter().flat_map(|v| v.to_le_bytes()));
        out
    }

    #[test]
    fn fields_are_read_and_those_that_are_not_there_have_their_default() {
        let bytes = bytes();
        let table = Flat::root(&bytes).unwrap();
        assert_eq!((table.byte(0, 1), table.byte(1, 9), table.long(2)), (Ok(7), Ok(9), Ok(-5)));
        assert_eq!(table.text(3), Ok("abc".to_string()));
        assert_eq!(table.longs::<1>(4).unwrap().collect::<Vec<_>>(), [[1], [2]]);
        assert_eq!((table.int(9, -1), table.short(9, 3), table.text(9)), (Ok(-1), Ok(3), Ok(String::new())));
    }

    #[test]
    fn no_damage_leads_out_of_the_bytes() {
        let good = bytes();
        let walk = |bytes: &[u8]| -> Walked<()> {
            let table = Flat::root(bytes)?;
            for id in 0..6 {
                let _ = (table.byte(id, 0), table.short(id, 0), table.int(id, 0), table.long(id), table.text(id));
                let _ = (table.longs::<2>(id).map(Iterator::count), table.table(id).map(|t| t.map(|t| t.long(0))));
                let _ = table.tables(id).map(|tables| tables.take(100).filter(|t| t.is_ok()).count());
            }
            Ok(())
        };
        assert_eq!(walk(&good), Ok(()));
        for at in 0..good.len() {
            let _ = walk(&good[..at]);
            for value in [0, 1, 127, 128, 255] {
                let mut bad = good.clone();
                bad[at] = value;
                let _ = walk(&bad);
            }
        }
    }
}
