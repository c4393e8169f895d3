//! Writes a scene as PNG.

use iolab_workload::escape_control::escape_control;
use iolab_workload::{Error, Result};
use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, PremultipliedColorU8,
    Stroke, StrokeDash, Transform,
};
use ttf_parser::OutlineBuilder;

use super::scene::{self, Item, Scene, Segment, Shape, Text};
use super::text;

/// Most pixels of a picture: 400 MB in memory.
const PIXELS_MAX: f64 = 1e8;
/// Points of an inch.
const POINTS_PER_INCH: f64 = 72.0;

/// Draws a scene with this resolution, pixels per inch.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage) when it would have too many pixels, of kind
/// [`Failed`](iolab_workload::Kind::Failed) when it cannot be written.
pub(super) fn png(scene: &Scene, dpi: f64) -> Result<Vec<u8>> {
    let scale = dpi / POINTS_PER_INCH;
    let [width, height] =
        [scene.width, scene.height].map(|points| (points * scale).round().max(1.0));
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
    // Pixels beyond the figure's edge are paper.
    pixels.fill(Color::WHITE);
    let scale = Transform::from_scale(scale as f32, scale as f32);
    for (item, series) in scene.drawn() {
        match item {
            Item::Shape(shape) => draw(&mut pixels, shape, series, scale),
            Item::Text(text) => write(&mut pixels, text, series, scale),
            Item::Open { .. } | Item::Close => {}
        }
    }
    encode(&pixels, dpi)
        .map_err(|error| Error::failed(format!("the figure cannot be written: {error}")))
}

/// Ink of a colour written `#rrggbb`.
fn ink(colour: &str, opacity: f64) -> Paint<'static> {
    let [r, g, b] = scene::channels(colour);
    let mut ink = Paint {
        anti_alias: true,
        ..Paint::default()
    };
    ink.set_color_rgba8(r, g, b, (opacity * 255.0).round() as u8);
    ink
}

fn draw(pixels: &mut Pixmap, shape: &Shape, series: &str, scale: Transform) {
    let Some(path) = path(&shape.outline) else {
        return;
    };
    if let Some(paint) = shape.fill {
        let ink = ink(paint.colour(series), shape.opacity);
        pixels.fill_path(&path, &ink, FillRule::Winding, scale, None);
    }
    if let Some(stroke) = &shape.stroke {
        let dashes = stroke.dash.split_whitespace();
        let dashes = dashes.filter_map(|length| length.parse().ok()).collect();
        let line = Stroke {
            width: stroke.width as f32,
            line_join: LineJoin::Round,
            line_cap: match stroke.is_round {
                true => LineCap::Round,
                false => LineCap::Butt,
            },
            dash: StrokeDash::new(dashes, 0.0),
            ..Stroke::default()
        };
        let ink = ink(stroke.paint.colour(series), shape.opacity);
        pixels.stroke_path(&path, &ink, &line, scale, None);
    }
}

fn path(outline: &[Segment]) -> Option<Path> {
    let mut path = PathBuilder::new();
    let at = |(x, y): (f64, f64)| (x as f32, y as f32);
    for segment in outline {
        match *segment {
            Segment::Move(to) => path.move_to(at(to).0, at(to).1),
            Segment::Line(to) => path.line_to(at(to).0, at(to).1),
            Segment::Curve(points) => {
                let [(x1, y1), (x2, y2), (x, y)] = points.map(at);
                path.cubic_to(x1, y1, x2, y2, x, y);
            }
            Segment::Close => path.close(),
        }
    }
    path.finish()
}

fn write(pixels: &mut Pixmap, text: &Text, series: &str, scale: Transform) {
    let ink = ink(text.paint.colour(series), 1.0);
    let size = text.size / text::units_per_em();
    let (mut x, mut y) = text.start();
    for glyph in text::glyphs(&escape_control(&text.text)) {
        let mut letter = Letter(PathBuilder::new());
        text::outline(glyph.id, &mut letter);
        let [size, at_x, at_y] = [size, x, y].map(|number| number as f32);
        // The font's outlines go upwards from the baseline.
        let place = match text.upwards {
            true => Transform::from_row(0.0, -size, -size, 0.0, at_x, at_y),
            false => Transform::from_row(size, 0.0, 0.0, -size, at_x, at_y),
        };
        if let Some(path) = letter.0.finish() {
            let place = place.post_concat(scale);
            pixels.fill_path(&path, &ink, FillRule::Winding, place, None);
        }
        match text.upwards {
            true => y -= glyph.advance * text.size,
            false => x += glyph.advance * text.size,
        }
    }
}

/// The outline of a letter in units of the font.
struct Letter(PathBuilder);

impl OutlineBuilder for Letter {
    fn move_to(&mut self, x: f32, y: f32) {
        self.0.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.0.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.0.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.0.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.0.close();
    }
}

/// Three channels, since the paper is opaque.
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
