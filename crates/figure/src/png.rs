//! An SVG as PNG.

use iolab_spec::{Error, Result};
use resvg::tiny_skia::{Color, Pixmap, PremultipliedColorU8, Transform};
use resvg::usvg::{self, fontdb};

use super::text::FONT;

/// Most pixels of a picture: 400 MB in memory.
const PIXELS_MAX: f64 = 1e8;
/// Pixels per inch that the sizes of a parsed SVG are counted in.
const PARSED_DPI: f64 = 96.0;

/// The SVG as a tree to draw, set in the font of all figures.
///
/// # Errors
/// Of kind failed; what this crate writes can be read.
pub(super) fn tree(svg: &str) -> Result<usvg::Tree> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(FONT.to_vec());
    let options = usvg::Options {
        fontdb: std::sync::Arc::new(fonts),
        font_family: "Noto Sans".to_owned(),
        ..usvg::Options::default()
    };
    usvg::Tree::from_str(svg, &options)
        .map_err(|error| Error::failed(format!("the figure cannot be drawn: {error}")))
}

/// Draws an SVG with so many pixels per inch.
///
/// # Errors
/// Of kind usage when it would have too many pixels, of kind failed when it cannot be drawn.
pub(super) fn png(svg: &str, dpi: f64) -> Result<Vec<u8>> {
    let tree = tree(svg)?;
    let scale = dpi / PARSED_DPI;
    let (width, height) = (
        (f64::from(tree.size().width()) * scale).round().max(1.0),
        (f64::from(tree.size().height()) * scale).round().max(1.0),
    );
    let too_large = || {
        Error::usage(format!(
            "a picture of {width} by {height} pixels is too large"
        ))
        .hint("choose a smaller size, or write SVG or PDF")
    };
    if !(width * height).is_finite() || width * height > PIXELS_MAX {
        return Err(too_large());
    }
    let mut pixels = Pixmap::new(width as u32, height as u32).ok_or_else(too_large)?;
    // Where the last pixel is more than the figure, it is paper.
    pixels.fill(Color::WHITE);
    resvg::render(
        &tree,
        Transform::from_scale(scale as f32, scale as f32),
        &mut pixels.as_mut(),
    );
    encode(&pixels, dpi)
        .map_err(|error| Error::failed(format!("the figure cannot be written: {error}")))
}

/// The paper is opaque, so three channels say all.
fn encode(pixels: &Pixmap, dpi: f64) -> std::result::Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, pixels.width(), pixels.height());
    encoder.set_color(png::ColorType::Rgb);
    let per_metre = (dpi / 0.0254).round() as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions {
        xppu: per_metre,
        yppu: per_metre,
        unit: png::Unit::Meter,
    }));
    let channels = |pixel: &PremultipliedColorU8| [pixel.red(), pixel.green(), pixel.blue()];
    let data: Vec<u8> = pixels.pixels().iter().flat_map(channels).collect();
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&data)?;
    writer.finish()?;
    Ok(bytes)
}
