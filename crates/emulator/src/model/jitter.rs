//! The random part of a delay.

use farline_spec::JitterShape;

use super::draw::Draws;

/// Draws the random part of each packet's delay, from minus to plus a spread.
#[derive(Debug)]
pub(super) struct Jitter {
    draws: Draws,
    shape: Shape,
}

#[derive(Debug)]
enum Shape {
    /// Equally likely between minus and plus so many nanoseconds.
    Uniform(u64),
    /// Quantiles in nanoseconds, equally spaced in probability.
    Table(Vec<i64>),
}

/// Steps of the table of quantiles; within a step the distribution is taken as flat.
const STEPS: usize = 4096;

impl Jitter {
    pub(super) fn new(shape: JitterShape, jitter_ns: u64, draws: Draws) -> Self {
        let shape = match shape {
            JitterShape::Uniform => Shape::Uniform(jitter_ns),
            JitterShape::Normal => Shape::Table(normal_quantiles(jitter_ns)),
        };
        Self { draws, shape }
    }

    /// What is added to the delay of packet `number`, in nanoseconds.
    pub(super) fn offset_ns(&self, number: u64) -> i64 {
        let draw = self.draws.at(number);
        match &self.shape {
            Shape::Uniform(spread_ns) => {
                let width = 2 * u128::from(*spread_ns) + 1;
                ((u128::from(draw) * width) >> 64) as i64 - *spread_ns as i64
            }
            Shape::Table(quantiles) => {
                let step = (draw >> 52) as usize;
                let within = i128::from(draw << 12 >> 12);
                let width = i128::from(quantiles[step + 1] - quantiles[step]);
                quantiles[step] + ((width * within) >> 52) as i64
            }
        }
    }
}

/// Quantiles of the normal distribution cut off at four standard deviations: the density added up over a fine grid and
/// read backwards.
fn normal_quantiles(sigma_ns: u64) -> Vec<i64> {
    const CELLS: usize = 16_384;
    const REACH: f64 = 4.0;
    let width = 2.0 * REACH / CELLS as f64;
    let middle = |cell: usize| -REACH + (cell as f64 + 0.5) * width;
    let mass: Vec<f64> = (0..CELLS)
        .map(|cell| (-0.5 * middle(cell).powi(2)).exp())
        .collect();
    let total: f64 = mass.iter().sum();
    let (mut cell, mut below) = (0, 0.0);
    let mut quantile = |step: usize| {
        let wanted = total * step as f64 / STEPS as f64;
        while cell + 1 < CELLS && below + mass[cell] < wanted {
            below += mass[cell];
            cell += 1;
        }
        let within = ((wanted - below) / mass[cell]).clamp(0.0, 1.0);
        let sigmas = -REACH + (cell as f64 + within) * width;
        (sigmas * sigma_ns as f64).round() as i64
    };
    (0..=STEPS).map(&mut quantile).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::draw::Purpose;

    fn offsets(shape: JitterShape) -> Vec<i64> {
        let jitter = Jitter::new(shape, 1_000_000, Draws::new(11, 0, Purpose::Jitter));
        (1..=100_000).map(|number| jitter.offset_ns(number)).collect()
    }

    /// Largest distance between the empirical distribution and a given one (Kolmogorov and Smirnov).
    fn distance(mut sample: Vec<i64>, distribution: impl Fn(f64) -> f64) -> f64 {
        sample.sort_unstable();
        let count = sample.len() as f64;
        let gaps = sample
            .iter()
            .enumerate()
            .map(|(place, value)| ((place as f64 + 0.5) / count - distribution(*value as f64)).abs());
        gaps.fold(0.0, f64::max)
    }

    /// Distance that a true sample of 100,000 exceeds once in a thousand times: 1.95 / sqrt(n).
    const CRITICAL: f64 = 1.95 / 316.2;

    #[test]
    fn uniform_jitter_is_uniform_and_within_its_spread() {
        let sample = offsets(JitterShape::Uniform);
        assert!(sample.iter().all(|value| value.abs() <= 1_000_000));
        assert!(distance(sample, |value| (value / 1e6 + 1.0) / 2.0) < CRITICAL);
    }

    #[test]
    fn normal_jitter_is_normal_and_cut_at_four_deviations() {
        let sample = offsets(JitterShape::Normal);
        assert!(sample.iter().all(|value| value.abs() <= 4_000_000));
        assert!(distance(sample, |value| normal_below(value / 1e6)) < CRITICAL);
    }

    #[test]
    fn quantiles_are_those_of_the_normal_distribution() {
        let table = normal_quantiles(1_000_000_000);
        // 0.5, Phi(1) = 0.841345, Phi(2) = 0.977250: the cut at four deviations moves them by less than 1e-4.
        for (probability, sigmas) in [(0.5, 0.0), (0.841_345, 1.0), (0.977_250, 2.0)] {
            let value = table[(probability * STEPS as f64).round() as usize] as f64 / 1e9;
            assert!((value - sigmas).abs() < 5e-3, "{probability}: {value}");
        }
        assert_eq!((table[0], table[STEPS]), (-4_000_000_000, 4_000_000_000));
    }

    /// The normal distribution by its series around 0 (Abramowitz and Stegun 26.2.11).
    fn normal_below(sigmas: f64) -> f64 {
        let (mut term, mut sum) = (sigmas, sigmas);
        for odd in (3..200).step_by(2) {
            term *= sigmas * sigmas / f64::from(odd);
            sum += term;
        }
        0.5 + sum * (-0.5 * sigmas * sigmas).exp() / (2.0 * std::f64::consts::PI).sqrt()
    }
}
