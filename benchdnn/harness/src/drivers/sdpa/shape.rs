//! The meaning of a problem's dimensions and options.

use super::choices::{KvScales, MaskKind, Window};
use super::parameters::SdpaProblem;
use crate::data_type::DataType;
use crate::oracle::sdpa::{Rules, Shape, Window as Keys};

/// The letters of the scores' dimensions.
pub(super) const LETTERS: &str = "abcd";

/// Pages that no sequence uses.
const SPARE_PAGES: usize = 3;

impl SdpaProblem {
    /// The sizes, from checked dimensions.
    pub(super) fn shape(&self) -> Shape {
        let [q, k, v] = &self.dims;
        Shape {
            sequences: q[0],
            heads: q[1],
            groups: k[1],
            queries: q[2],
            keys: k[3],
            head: q[3],
            values: v[3],
        }
    }

    /// The dimensions of dst.
    pub(super) fn dst_dims(&self) -> Vec<usize> {
        let shape = self.shape();
        vec![shape.sequences, shape.heads, shape.queries, shape.values]
    }

    /// The dimensions of the tensor of keys.
    pub(super) fn key_dims(&self) -> Vec<usize> {
        let [_, k, _] = &self.dims;
        match self.page_size {
            0 => k.clone(),
            size => vec![self.pool(), k[1], k[2], size],
        }
    }

    /// The dimensions of the tensor of values.
    pub(super) fn value_dims(&self) -> Vec<usize> {
        let [_, _, v] = &self.dims;
        match self.page_size {
            0 => v.clone(),
            size => vec![self.pool(), v[1], size, v[3]],
        }
    }

    /// Pages per sequence.
    pub(super) fn pages(&self) -> usize {
        self.shape().keys.checked_div(self.page_size).unwrap_or(0)
    }

    /// All pages.
    pub(super) fn pool(&self) -> usize {
        match self.own_pool {
            0 => self.shape().sequences * self.pages() + SPARE_PAGES,
            pool => pool,
        }
    }

    /// The dimensions along which the mask's tensor is not broadcast; empty without a tensor.
    pub(super) fn mask_letters(&self) -> &str {
        match &self.mask_dims[..] {
            "" => self.mask.letters(),
            letters => letters,
        }
    }

    /// The dimensions of the mask's tensor, if there is one.
    pub(super) fn mask_tensor(&self) -> Option<[usize; 4]> {
        let letters = self.mask_letters();
        let shape = self.shape();
        let dims = [shape.sequences, shape.heads, shape.queries, shape.keys];
        let own = |d: usize| if letters.contains(&LETTERS[d..=d]) { dims[d] } else { 1 };
        (!letters.is_empty()).then(|| std::array::from_fn(own))
    }

    /// The dimensions of queries, keys and values and, if these match, of dst and the mask.
    pub(super) fn all_dims(&self) -> Vec<Vec<usize>> {
        let mut all = self.dims.to_vec();
        if self.refused_dims().is_none() {
            all.push(self.dst_dims());
            all.extend(self.mask_tensor().map(|dims| dims.to_vec()));
        }
        all
    }

    /// The factor of scores.
    pub(super) fn factor(&self) -> f32 {
        self.scale.value(self.shape().head)
    }

    /// The rules for the oracle.
    pub(super) fn rules(&self) -> Rules {
        Rules {
            scale: f64::from(self.factor()),
            soft_cap: f64::from(self.soft_cap),
            causal: self.mask.is_causal(),
            bottom_right: self.mask == MaskKind::BottomRight,
            window: match self.window {
                Window::None => Keys::None,
                Window::WithSelf(keys) => Keys::WithSelf(keys),
                Window::BeforeSelf(keys) => Keys::BeforeSelf(keys),
            },
            first_keys: self.first_keys,
            bf16: self.types.0[0] == DataType::Bf16,
        }
    }

    /// Whether queries or keys are packed.
    pub(super) fn is_packed(&self) -> bool {
        self.flags.query_offsets() || self.flags.key_offsets()
    }

    /// Why options of packed sequences do not match.
    fn refused_packed(&self) -> Option<&'static str> {
        let flags = self.flags;
        if flags.query_offsets() && flags.query_lengths()
            || flags.key_offsets() && flags.key_lengths()
        {
            return Some("packed sequences have offsets, not lengths");
        }
        if flags.key_offsets() && (self.page_size > 0 || self.kv_scales != KvScales::None) {
            return Some("packed keys have neither pages nor scales");
        }
        if self.is_packed() && self.mask_tensor().is_some() {
            return Some("packed sequences cannot have a mask tensor");
        }
        None
    }

    /// Why the dimensions do not match.
    fn refused_dims(&self) -> Option<String> {
        let [q, k, v] = &self.dims;
        if [q, k, v].iter().any(|dims| dims.len() != 4) {
            return Some("queries, keys and values have four dimensions".to_owned());
        }
        if q[0] != k[0] || q[0] != v[0] {
            let [q, k, v] = [q[0], k[0], v[0]];
            return Some(format!("queries have {q} sequences, keys {k} and values {v}"));
        }
        if k[1] != v[1] {
            return Some(format!("keys have {} heads and values {}", k[1], v[1]));
        }
        if q[3] != k[2] {
            return Some(format!(
                "keys are D x T, as in oneDNN: {}xT with these queries, not {}x{}",
                q[3], k[2], k[3]
            ));
        }
        if k[3] != v[2] {
            return Some(format!("there are {} keys and {} values", k[3], v[2]));
        }
        if k[1] == 0 || !q[1].is_multiple_of(k[1]) {
            return Some(format!("{} heads of queries are not a multiple of {}", q[1], k[1]));
        }
        if self.page_size > 0 && !k[3].is_multiple_of(self.page_size) {
            return Some(format!(
                "{} keys are not a multiple of --page-size={}",
                k[3], self.page_size
            ));
        }
        None
    }

    /// Why the dimensions or options do not match.
    pub(super) fn refused(&self) -> Option<String> {
        self.refused_dims().or_else(|| self.refused_options().map(str::to_owned))
    }

    /// Why the options do not match.
    fn refused_options(&self) -> Option<&'static str> {
        let [q_dt, k_dt, v_dt, _] = self.types.0;
        let quantized = [k_dt, v_dt].map(|dt| [DataType::S8, DataType::F8E4m3].contains(&dt));
        if k_dt != q_dt && !quantized[0] || v_dt != q_dt && !quantized[1] {
            return Some("keys and values have the type of queries, s8 or f8_e4m3");
        }
        match self.kv_scales {
            KvScales::None if [k_dt, v_dt].contains(&DataType::S8) => {
                return Some("keys and values of s8 have scales");
            }
            KvScales::None => {}
            _ if quantized != [true; 2] => return Some("only s8 and f8_e4m3 have scales"),
            _ => {}
        }
        if let Some(reason) = self.refused_packed() {
            return Some(reason);
        }
        if self.window == Window::None && self.first_keys > 0 {
            return Some("first keys without a window");
        }
        if self.window == Window::WithSelf(0) {
            return Some("with_self needs a window of 1 or more");
        }
        let forward = self.direction.is_forward();
        if !forward && quantized != [false; 2] {
            return Some("in backward, keys and values must have the type of queries");
        }
        if !forward && (self.flags.entropy() || self.page_size > 0) {
            return Some("backward has no entropy and no pages");
        }
        if self.diff_mask && (forward || self.mask_tensor().is_none()) {
            return Some("--diff-mask needs backward and a mask");
        }
        if self.diff_mask && self.mask_dt == DataType::U8 {
            return Some("a mask of u8 has no gradient");
        }
        if self.mask == MaskKind::None && !self.mask_dims.is_empty() {
            return Some("--mask-dims needs --mask");
        }
        None
    }
}
