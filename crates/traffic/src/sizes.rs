//! Flow-size distributions.

use crate::context::Build;
use crate::lines::{FileError, Lines};
use fanin_params::{choice, names, params};
use fanin_units::{Bytes, Stream};

params! {
    /// A published distribution, which has no parameters.
    pub struct Published { }
}

names! {
    /// Notation of probabilities in a distribution file.
    pub enum Probability {
        /// By the last line, which is 1 or 100; the choice is reported.
        "auto" => Auto,
        /// Probabilities from 0 to 1.
        "fraction" => Fraction,
        /// Probabilities from 0 to 100.
        "percent" => Percent,
    }
}

params! {
    /// Distribution from a file: one point a line, `SIZE PROBABILITY` or `SIZE BIN PROBABILITY`, separated by blanks or a
    /// comma; linear between points. `#` starts a comment, one heading line is allowed. Reads files of HPCC and Alibaba
    /// (percent), pFabric (three columns, packets: `unit = "1460B"`) and our own.
    pub struct SizeFile {
        /// Path of the file, relative to the scenario's folder.
        pub path: String;
        /// Notation of probabilities in the file.
        pub probability: Probability = Probability::Auto;
        /// Unit of the size column.
        pub unit: Bytes = Bytes(1), in Bytes(1)..=Bytes(1_000_000);
    }
}

params! {
    /// Constant size.
    pub struct FixedSize {
        /// Size of every flow.
        pub size: Bytes, in Bytes(1)..;
    }
}

params! {
    /// Uniform distribution between two sizes, both included.
    pub struct UniformSize {
        /// Smallest size.
        pub min: Bytes, in Bytes(1)..;
        /// Largest size.
        pub max: Bytes, in Bytes(1)..;
    }
}

params! {
    /// Exponential distribution, rounded to bytes, at least 1.
    pub struct ExponentialSize {
        /// Mean of the distribution.
        pub mean: Bytes, in Bytes(1)..;
    }
}

choice! {
    /// Distribution of flow sizes.
    pub enum Sizes {
        /// Web search, DCTCP (SIGCOMM 2010); mean 1.71 MB.
        "web-search" => WebSearch(Published),
        /// Data mining, VL2 (SIGCOMM 2009) as used by CONGA (SIGCOMM 2014).
        "data-mining" => DataMining(Published),
        /// Enterprise, CONGA (SIGCOMM 2014).
        "enterprise" => Enterprise(Published),
        /// Hadoop, Facebook (SIGCOMM 2015), as used by HPCC (SIGCOMM 2019).
        "hadoop" => Hadoop(Published),
        /// Distributed storage, Alibaba 2019, published with HPCC (SIGCOMM 2019).
        "storage" => Storage(Published),
        /// Distribution from a file.
        "file" => File(SizeFile),
        /// All flows of equal size.
        "fixed" => Fixed(FixedSize),
        /// Uniform distribution between two sizes.
        "uniform" => Uniform(UniformSize),
        /// Exponential distribution.
        "exponential" => Exponential(ExponentialSize),
    }
}

/// Text of a published distribution's file.
pub fn published(name: &str) -> Option<&'static str> {
    Some(match name {
        "web-search" => include_str!("../../../workloads/web-search.csv"),
        "data-mining" => include_str!("../../../workloads/data-mining.csv"),
        "enterprise" => include_str!("../../../workloads/enterprise.csv"),
        "hadoop" => include_str!("../../../workloads/hadoop.csv"),
        "storage" => include_str!("../../../workloads/storage.csv"),
        _ => return None,
    })
}

/// A cumulative distribution function, piecewise linear.
#[derive(Clone, Debug, PartialEq)]
pub struct Cdf {
    /// Points of the function: size in bytes, and probability of at most that size; both never decrease, the last probability
    /// is 1.
    points: Vec<(f64, f64)>,
}

/// Notation of probabilities found in a distribution file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    Fraction,
    Percent,
}

const MAX_POINTS: usize = 1_000_000;

impl Cdf {
    /// A published distribution by name: `web-search`, `data-mining`, `enterprise`, `hadoop` or `storage`.
    pub fn published(name: &str) -> Option<Cdf> {
        let (cdf, _) = Cdf::read(published(name)?.as_bytes(), Probability::Fraction, 1.0).ok()?;
        Some(cdf)
    }

    /// Parses a distribution file.
    pub(crate) fn read(
        source: impl std::io::BufRead,
        probability: Probability,
        unit: f64,
    ) -> Result<(Cdf, Scale), Vec<FileError>> {
        let mut lines = Lines::new(source);
        let mut errors = Vec::new();
        let mut rows: Vec<(f64, f64, u32)> = Vec::new();
        let mut first = true;
        while let Some((number, line)) = lines.next().map_err(|e| vec![e])? {
            let fields: Vec<&str> = line.split(|c: char| c == ',' || c.is_whitespace()).filter(|f| !f.is_empty()).collect();
            let heading = std::mem::take(&mut first) && fields.iter().all(|f| f.parse::<f64>().is_err());
            if heading {
                continue;
            }
            let (size, probability) = match fields[..] {
                [size, probability] | [size, _, probability] => (size, probability),
                _ => {
                    errors.push(FileError::at(
                        number,
                        line,
                        "is not a point of a distribution",
                        "SIZE PROBABILITY, or SIZE BIN PROBABILITY",
                    ));
                    continue;
                }
            };
            let read = |field: &str| field.parse::<f64>().ok().filter(|x| x.is_finite());
            match (read(size), read(probability)) {
                (Some(s), Some(p)) if s >= 0.0 && p >= 0.0 => {
                    if let Some((before, earlier, _)) = rows.last() {
                        if s < *before {
                            errors.push(FileError::at(
                                number,
                                size,
                                &format!("is a smaller size than the {before} before it"),
                                "sizes that never decrease",
                            ));
                        }
                        if p < *earlier {
                            errors.push(FileError::at(
                                number,
                                probability,
                                &format!("is a smaller probability than the {earlier} before it"),
                                "probabilities that never decrease",
                            ));
                        }
                    }
                    rows.push((s, p, number));
                }
                (s, p) => {
                    for (field, value) in [(size, s), (probability, p)] {
                        match value {
                            None => errors.push(FileError::at(number, field, "is not a number", "a number of at least 0")),
                            Some(x) if x < 0.0 => {
                                errors.push(FileError::at(number, field, "is negative", "a number of at least 0"))
                            }
                            Some(_) => {}
                        }
                    }
                }
            }
            if errors.len() >= FileError::MOST || rows.len() > MAX_POINTS {
                break;
            }
        }
        if rows.len() > MAX_POINTS {
            errors.push(FileError::whole(&format!("has more than {MAX_POINTS} points"), "a distribution"));
        }
        if errors.is_empty() && rows.len() < 2 {
            errors.push(FileError::whole(&format!("has {} points", rows.len()), "at least 2 points"));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        Self::scaled(&rows, probability, unit).map_err(|error| vec![error])
    }

    fn scaled(rows: &[(f64, f64, u32)], probability: Probability, unit: f64) -> Result<(Cdf, Scale), FileError> {
        let &(largest, last, number) = rows.last().expect("at least two rows");
        let is = |end: f64| (last - end).abs() <= 1e-9 * end;
        let scale = match probability {
            Probability::Auto if is(1.0) => Scale::Fraction,
            Probability::Auto if is(100.0) => Scale::Percent,
            Probability::Fraction if is(1.0) => Scale::Fraction,
            Probability::Percent if is(100.0) => Scale::Percent,
            _ => {
                let accepted = match probability {
                    Probability::Auto => "1 (fractions) or 100 (percent)",
                    Probability::Fraction => "1",
                    Probability::Percent => "100",
                };
                return Err(FileError::at(number, &last.to_string(), "is not where a distribution ends", accepted));
            }
        };
        if largest * unit < 1.0 || largest * unit > 1e18 {
            return Err(FileError::at(
                number,
                &largest.to_string(),
                "is not a size for the largest flow",
                "1 byte to 10^18 bytes",
            ));
        }
        let points = rows.iter().map(|&(size, p, _)| (size * unit, p / last)).collect();
        Ok((Cdf { points }, scale))
    }

    /// Points of the function: size in bytes and probability.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// Mean in bytes: Σ (p_i − p_{i−1})·(x_i + x_{i−1})/2, plus x_0·p_0 where the first probability is not zero.
    pub fn mean(&self) -> f64 {
        let (x0, p0) = self.points[0];
        self.points.windows(2).fold(x0 * p0, |sum, pair| sum + (pair[1].1 - pair[0].1) * (pair[1].0 + pair[0].0) / 2.0)
    }

    /// Size in bytes at probability `u` in [0, 1).
    pub fn quantile(&self, u: f64) -> f64 {
        let after = self.points.partition_point(|&(_, p)| p <= u);
        if after == 0 {
            return self.points[0].0;
        }
        let (x0, p0) = self.points[after - 1];
        self.points.get(after).map_or(x0, |&(x1, p1)| x0 + (x1 - x0) * ((u - p0) / (p1 - p0)))
    }

    /// Probability of at most `size` bytes.
    pub fn probability(&self, size: f64) -> f64 {
        let after = self.points.partition_point(|&(x, _)| x <= size);
        if after == 0 {
            return 0.0;
        }
        let (x0, p0) = self.points[after - 1];
        self.points.get(after).map_or(1.0, |&(x1, p1)| p0 + (p1 - p0) * ((size - x0) / (x1 - x0)))
    }
}

/// A size distribution that can be drawn from.
#[derive(Clone, Debug)]
pub(crate) enum SizeDist {
    Cdf(Cdf),
    Fixed(u64),
    Uniform(u64, u64),
    Exponential(f64),
}

impl SizeDist {
    pub fn build(sizes: &Sizes, build: &mut Build) -> Option<SizeDist> {
        Some(match sizes {
            Sizes::File(file) => {
                let path = build.ctx.base_dir.join(&file.path);
                let opened = crate::lines::open(&path).map_err(|error| vec![error]);
                match opened.and_then(|source| Cdf::read(source, file.probability, file.unit.get() as f64)) {
                    Ok((cdf, scale)) => {
                        if file.probability == Probability::Auto {
                            let (end, read_as) = if scale == Scale::Percent { (100, "percent") } else { (1, "fractions") };
                            build.notes.push(format!(
                                "{}: {} ends at {end}: read as {read_as}; mean {:.0} bytes",
                                build.name,
                                file.path,
                                cdf.mean()
                            ));
                        }
                        SizeDist::Cdf(cdf)
                    }
                    Err(errors) => {
                        crate::lines::report(build, "sizes.path", &file.path, errors);
                        return None;
                    }
                }
            }
            Sizes::Fixed(fixed) => SizeDist::Fixed(fixed.size.get()),
            Sizes::Uniform(uniform) => {
                if uniform.min > uniform.max {
                    build.error(
                        "sizes.max",
                        Some(uniform.max.to_string()),
                        "is less than `min`",
                        Some(&format!("at least {}", uniform.min)),
                    );
                    return None;
                }
                SizeDist::Uniform(uniform.min.get(), uniform.max.get())
            }
            Sizes::Exponential(exponential) => SizeDist::Exponential(exponential.mean.get() as f64),
            named => SizeDist::Cdf(Cdf::published(named.kind())?),
        })
    }

    /// Mean size in bytes.
    pub fn mean(&self) -> f64 {
        match self {
            SizeDist::Cdf(cdf) => cdf.mean(),
            SizeDist::Fixed(size) => *size as f64,
            SizeDist::Uniform(min, max) => (*min as f64 + *max as f64) / 2.0,
            SizeDist::Exponential(mean) => *mean,
        }
    }

    /// Draws a size, rounded to the nearest byte, at least 1.
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        let drawn = match self {
            SizeDist::Fixed(size) => return *size,
            SizeDist::Uniform(min, max) => return min + stream.below((max - min).saturating_add(1)),
            SizeDist::Cdf(cdf) => cdf.quantile(stream.unit()),
            SizeDist::Exponential(mean) => stream.exponential(*mean),
        };
        (libm::round(drawn) as u64).max(1)
    }
}
