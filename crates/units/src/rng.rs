//! Random streams: one per (seed, purpose, entity), so that a new flow disturbs no other draw.

/// Purpose of a stream of random numbers; each purpose has streams of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Purpose {
    /// Flow arrival times.
    Arrivals = 1,
    /// Flow sizes.
    Sizes = 2,
    /// Choice of source and destination.
    Endpoints = 3,
    /// Start jitter.
    Jitter = 4,
    /// Probabilistic marking and dropping at a port.
    Marking = 5,
    /// ECMP hash seeds of switches.
    Hashing = 6,
    /// Per-packet path choice.
    Spraying = 7,
    /// Port numbers of flows.
    Ports = 8,
    /// Initial sequence numbers and timestamp offsets.
    Transport = 9,
    /// Random decisions of a switch mechanism at a port.
    Mechanism = 10,
    /// Order of packets that arrive at the same time.
    Ties = 11,
    /// Random delay that a host adds to each packet it receives.
    HostNoise = 12,
    /// Bit errors of a link.
    BitErrors = 13,
}

/// A PCG-XSH-RR 64/32 generator: 16 bytes, own increment per stream. Source: PCG.
#[derive(Clone, Debug)]
pub struct Stream {
    state: u64,
    increment: u64,
}

/// SplitMix64's finaliser: every input bit moves every output bit.
#[inline]
pub(crate) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Stream {
    /// The stream of `entity` for `purpose` in the run seeded `seed`.
    pub fn new(seed: u64, purpose: Purpose, entity: u64) -> Self {
        let key = mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ mix((purpose as u64).wrapping_mul(0xd1b5_4a32_d192_ed03));
        let state = mix(key ^ mix(entity.wrapping_add(0x2545_f491_4f6c_dd1d)));
        let increment = mix(state ^ key.rotate_left(17)) | 1;
        Stream { state, increment }
    }

    /// Draws 32 random bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        let old = self.state;
        self.state = old.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(self.increment);
        let xorshifted = (((old >> 18) ^ old) >> 27) as u32;
        xorshifted.rotate_right((old >> 59) as u32)
    }

    /// Draws 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        u64::from(self.next_u32()) << 32 | u64::from(self.next_u32())
    }

    /// Draws a uniform number in [0, 1) with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws a uniform integer in 0..n without bias. Source: Lemire.
    ///
    /// # Panics
    /// When `n` is zero.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "a draw from nothing");
        let mut product = u128::from(self.next_u64()) * u128::from(n);
        if (product as u64) < n {
            let threshold = n.wrapping_neg() % n;
            while (product as u64) < threshold {
                product = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// Draws from the exponential distribution with mean `mean`.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }

    /// Shuffles `items` in place (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}
