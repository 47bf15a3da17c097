//! Sums of a file's content, several in one pass.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;

use farline_spec::{NameSum, SumKind};
use farline_sys::file;
use md5::{Digest, Md5};

use crate::sum::Hasher;

/// Read at once.
const READ_BYTES: usize = 1 << 20;

/// One sum while it grows.
enum Growing {
    Blake3(Box<Hasher>),
    Adler32(simd_adler32::Adler32),
    Md5(Md5),
}

impl Growing {
    fn new(sum: NameSum) -> Self {
        match sum {
            NameSum::Blake3 => Self::Blake3(Box::new(Hasher::new(SumKind::Blake3))),
            NameSum::Adler32 => Self::Adler32(simd_adler32::Adler32::new()),
            NameSum::Md5 => Self::Md5(Md5::new()),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Blake3(sum) => sum.update(bytes),
            Self::Adler32(sum) => sum.write(bytes),
            Self::Md5(sum) => sum.update(bytes),
        }
    }

    fn hex(self) -> String {
        match self {
            Self::Blake3(sum) => sum.sum().hex(),
            Self::Adler32(sum) => format!("{:08x}", sum.finish()),
            Self::Md5(sum) => sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

/// The sums of a file in one pass; none once nobody wants them.
pub(super) fn sums_of(
    file: BorrowedFd<'_>,
    sums: &[NameSum],
    is_wanted: &dyn Fn() -> bool,
) -> io::Result<Option<BTreeMap<NameSum, String>>> {
    let mut growing: BTreeMap<_, _> = sums.iter().map(|&sum| (sum, Growing::new(sum))).collect();
    let (mut buffer, mut offset) = (vec![0; READ_BYTES], 0);
    loop {
        if !is_wanted() {
            return Ok(None);
        }
        let count = file::read_at(file, &mut buffer, offset)?;
        growing.values_mut().for_each(|sum| sum.update(&buffer[..count]));
        offset += count as u64;
        if count < buffer.len() {
            let ended = growing.into_iter().map(|(sum, growing)| (sum, growing.hex()));
            return Ok(Some(ended.collect()));
        }
    }
}
