//! An SVG as PDF.

use iolab_spec::{Error, Result};
use krilla::Document;
use krilla::geom::Size;
use krilla::page::PageSettings;
use krilla_svg::{SurfaceExt, SvgSettings};

use super::png::tree;

/// Points per pixel of a parsed SVG: an inch has 72 of the one and 96 of the other.
const POINTS_PER_PIXEL: f32 = 0.75;

/// One page of the SVG's true size, with its text as text.
///
/// # Errors
/// Of kind failed when it cannot be made.
pub(super) fn pdf(svg: &str) -> Result<Vec<u8>> {
    let failed = |what: String| Error::failed(format!("the PDF cannot be made: {what}"));
    let tree = tree(svg)?;
    let (width, height) = (
        tree.size().width() * POINTS_PER_PIXEL,
        tree.size().height() * POINTS_PER_PIXEL,
    );
    let size = Size::from_wh(width, height).ok_or_else(|| failed("it has no size".to_owned()))?;
    let mut document = Document::new();
    let mut page = document.start_page_with(PageSettings::new(size));
    let mut surface = page.surface();
    let drawn = surface.draw_svg(&tree, size, SvgSettings::default());
    surface.finish();
    page.finish();
    drawn.ok_or_else(|| failed("the figure cannot be drawn".to_owned()))?;
    document
        .finish()
        .map_err(|error| failed(format!("{error:?}")))
}
