//! Axes of a plot.

/// Width and height of a plot with its axes, in units of its view box.
pub(crate) const WIDTH: f64 = 900.0;
pub(crate) const HEIGHT: f64 = 340.0;

/// Where the plot itself begins and ends within it.
pub(crate) const LEFT: f64 = 84.0;
pub(crate) const RIGHT: f64 = 888.0;
pub(crate) const TOP: f64 = 22.0;
pub(crate) const BOTTOM: f64 = 282.0;

/// Round numbers from 0 to at least `max`, at most seven.
pub(crate) fn ticks(max: f64) -> Vec<f64> {
    let max = if max.is_finite() && max > 0.0 { max } else { 1.0 };
    let power = 10_f64.powf((max / 5.0).log10().floor());
    let step =
        [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| step * 5.0 >= max);
    let step = step.unwrap_or(max);
    let count = (max / step).ceil().clamp(1.0, 6.0) as u32;
    (0..=count).map(|number| f64::from(number) * step).collect()
}

/// 1, 2 and 5 times powers of ten, from the last one not above `min` to the first not below `max`.
pub(crate) fn log_ticks(min: f64, max: f64) -> Vec<f64> {
    let min = if min.is_finite() && min > 0.0 { min } else { 1.0 };
    let max = if max.is_finite() && max > min { max } else { min * 2.0 };
    let (first, last) = (min.log10().floor() as i32, max.log10().ceil() as i32);
    let all: Vec<f64> =
        (first..=last).flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * 10_f64.powi(power))).collect();
    let from = all.iter().rposition(|tick| *tick <= min).unwrap_or(0);
    let to = all.iter().position(|tick| *tick >= max).unwrap_or(all.len() - 1);
    all[from..=to].to_vec()
}

/// A number at an axis.
pub(crate) fn label(value: f64) -> String {
    let text = match value {
        value if value >= 1_000_000.0 => return format!("{}M", trim(&format!("{:.2}", value / 1e6))),
        value if value >= 10_000.0 => return format!("{}k", trim(&format!("{:.1}", value / 1e3))),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 1.0 => format!("{value:.1}"),
        value => format!("{value:.3}"),
    };
    trim(&text).to_owned()
}

/// Without zeros at the end that say nothing.
fn trim(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// The frame of a plot: lines across at the ticks of the upright axis, and what the axes show. `height` is where
/// a value is.
pub(crate) fn upright(ticks: &[f64], height: impl Fn(f64) -> f64, text: impl Fn(f64) -> String) -> String {
    let mut out = String::new();
    for tick in ticks {
        let (y, text) = (height(*tick), text(*tick));
        out.push_str(&format!(
            "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{RIGHT}\" y2=\"{y:.1}\"/>\
             <text class=\"tick\" text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{text}</text>",
            LEFT - 8.0,
            y + 4.0
        ));
    }
    out
}

/// Lines upwards at the ticks of the other axis. `place` is where a value is; one whose text is empty has a line only.
pub(crate) fn across(ticks: &[f64], place: impl Fn(f64) -> f64, text: impl Fn(f64) -> String) -> String {
    let mut out = String::new();
    for tick in ticks {
        let x = place(*tick);
        out.push_str(&format!(
            "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{BOTTOM}\"/>"
        ));
        let text = text(*tick);
        if !text.is_empty() {
            // The last one would leave the picture.
            let (anchor, x) = if x > RIGHT - 1.0 { ("end", WIDTH - 2.0) } else { ("middle", x) };
            out.push_str(&format!(
                "<text class=\"tick\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{:.1}\">{text}</text>",
                BOTTOM + 17.0
            ));
        }
    }
    out
}

/// The number at a tick of an axis that goes by logarithms: of many, only the powers of ten have room for it.
pub(crate) fn log_label(ticks: &[f64], tick: f64) -> String {
    let is_crowded = ticks.len() > 16;
    if !is_crowded || tick.log10().fract().abs() < 1e-9 { label(tick) } else { String::new() }
}

/// A line through these places, with a name that is already escaped.
pub(crate) fn polyline(class: &str, name: &str, places: impl Iterator<Item = (f64, f64)>) -> String {
    let places: Vec<String> = places.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    format!("<g><title>{name}</title><polyline class=\"line {class}\" points=\"{}\"/></g>", places.join(" "))
}

/// A drawing on its base line, as a picture of a page.
pub(crate) fn picture(label: &str, drawing: &str) -> String {
    format!(
        "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{label}\">{drawing}</svg>"
    )
}

/// The line on which a plot stands.
pub(crate) fn base() -> String {
    format!("<line class=\"base\" x1=\"{LEFT}\" y1=\"{BOTTOM}\" x2=\"{RIGHT}\" y2=\"{BOTTOM}\"/>")
}

/// What the axes show.
pub(crate) fn titles(across: &str, up: &str) -> String {
    let (x, y) = (f64::midpoint(LEFT, RIGHT), f64::midpoint(TOP, BOTTOM));
    format!(
        "<text class=\"axis\" text-anchor=\"middle\" x=\"{x:.1}\" y=\"{:.1}\">{across}</text>\
         <text class=\"axis\" text-anchor=\"middle\" transform=\"rotate(-90 18 {y:.1})\" x=\"18\" y=\"{y:.1}\">{up}</text>",
        HEIGHT - 8.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_the_maximum() {
        assert_eq!(ticks(5.0), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(ticks(23_000.0), [0.0, 5_000.0, 10_000.0, 15_000.0, 20_000.0, 25_000.0]);
        assert_eq!(ticks(0.0).len(), ticks(1.0).len());
        for max in [0.001, 0.7, 3.3, 99.0, 101.0, 1e9, f64::NAN, f64::INFINITY] {
            let ticks = ticks(max);
            assert!((2..=7).contains(&ticks.len()), "{max}: {ticks:?}");
            assert!(!max.is_finite() || *ticks.last().unwrap() >= max * 0.999_999, "{max}: {ticks:?}");
        }
    }

    #[test]
    fn ticks_of_latencies_enclose_them() {
        assert_eq!(log_ticks(30.0, 900.0), [20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0]);
        assert_eq!(log_ticks(100.0, 100.0), [100.0, 200.0]);
        assert_eq!(log_ticks(0.0, f64::NAN), [1.0, 2.0]);
    }

    #[test]
    fn numbers_are_short() {
        let texts = [0.0, 0.25, 2.5, 20.0, 999.0, 5_000.0, 12_500.0, 2e6].map(label);
        assert_eq!(texts, ["0", "0.25", "2.5", "20", "999", "5000", "12.5k", "2M"]);
    }
}
