//! A train on its way, and when its segments were where it is.

use super::train::Train;

/// A train with its path and the instants of its segments at one place: the last at `at_ns`, the first `span_ns` earlier,
/// the others evenly between.
#[derive(Debug, Clone)]
pub(super) struct Transit<P> {
    pub(super) train: Train<P>,
    pub(super) from_port: u32,
    pub(super) to_port: u32,
    pub(super) at_ns: u64,
    pub(super) span_ns: u64,
}

impl<P> Transit<P> {
    pub(super) fn segments(&self) -> u16 {
        self.train.segments
    }

    /// The instant of the first segment.
    pub(super) fn first_ns(&self) -> u64 {
        self.at_ns - self.span_ns
    }

    /// The instant of the segment at `place`, counted from the run's first.
    pub(super) fn segment_ns(&self, place: u16) -> u64 {
        if self.span_ns == 0 {
            return self.at_ns;
        }
        let steps = u128::from(self.segments() - 1);
        self.first_ns() + (u128::from(self.span_ns) * u128::from(place) / steps) as u64
    }

    /// Sets when the first and the last segment are at the next place.
    pub(super) fn put(&mut self, first_ns: u64, last_ns: u64) {
        self.at_ns = last_ns;
        self.span_ns = if self.segments() == 1 {
            0
        } else {
            last_ns.saturating_sub(first_ns)
        };
    }
}

impl<P: Clone> Transit<P> {
    /// Takes the first `count` segments off; `count` is at least 1 and less than the number of segments.
    pub(super) fn take_front(&mut self, count: u16) -> Self {
        let (first_ns, cut_ns, rest_ns) = (
            self.first_ns(),
            self.segment_ns(count - 1),
            self.segment_ns(count),
        );
        let mut front = Self {
            train: self.train.take_front(count),
            ..*self
        };
        front.put(first_ns, cut_ns);
        self.put(rest_ns, self.at_ns);
        front
    }

    /// Splits into what is before the segment at `place`, that segment, and what is behind it.
    pub(super) fn isolate(mut self, place: u16) -> (Option<Self>, Self, Option<Self>) {
        let before = (place > 0).then(|| self.take_front(place));
        if self.segments() == 1 {
            return (before, self, None);
        }
        let one = self.take_front(1);
        (before, one, Some(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transit(segments: u16, at_ns: u64, span_ns: u64) -> Transit<()> {
        Transit {
            train: Train::uniform((), segments, 1500),
            from_port: 0,
            to_port: 1,
            at_ns,
            span_ns,
        }
    }

    #[test]
    fn parts_keep_the_instants_of_their_segments() {
        let mut rest = transit(11, 1_000, 100);
        let front = rest.take_front(4);
        assert_eq!((front.first_ns(), front.at_ns), (900, 930));
        assert_eq!((rest.first_ns(), rest.at_ns), (940, 1_000));
    }

    #[test]
    fn isolation_leaves_no_segment_out() {
        for place in 0..3 {
            let (before, one, after) = transit(3, 1_000, 20).isolate(place);
            assert_eq!(before.map_or(0, |part| part.segments()), place);
            assert_eq!((one.train.first, one.segments()), (place, 1));
            assert_eq!(one.at_ns, 980 + 10 * u64::from(place));
            assert_eq!(after.map_or(0, |part| part.segments()), 2 - place);
        }
    }
}
