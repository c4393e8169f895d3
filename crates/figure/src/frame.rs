//! A rectangle of a scene.

/// A rectangle: left, top, right, bottom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Frame {
    pub(super) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(super) fn height(&self) -> f64 {
        self.bottom - self.top
    }

    /// Whether two frames overlap by more than their edges.
    pub(super) fn overlaps(&self, other: &Frame) -> bool {
        const TOUCH: f64 = 0.01;
        self.left < other.right - TOUCH
            && other.left < self.right - TOUCH
            && self.top < other.bottom - TOUCH
            && other.top < self.bottom - TOUCH
    }
}
