//! The split of a problem's rows into tokens and heads.

use crate::error::{Error, Result};
use crate::tensor::{MAX_NDIMS, MemoryDesc, RowMap};
use arrayvec::ArrayVec;

type Dims = ArrayVec<i64, MAX_NDIMS>;

/// Offsets of a tensor's rows: that of the token plus that of the head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) tokens: RowMap,
    pub(super) heads: RowMap,
}

/// The order of rows: by token, then by head.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) tokens: usize,
    pub(super) heads: usize,
    /// Offsets in elements.
    pub(super) input: Places,
    /// Offsets in elements. With slots, its tokens are the slots.
    pub(super) output: Places,
    /// The logical row numbers.
    pub(super) input_rows: Places,
    pub(super) output_rows: Places,
    /// The offset of each token's position.
    pub(super) positions: RowMap,
    /// `inner` and `count`: a token's position includes the index `token / inner % count`.
    pub(super) index: Option<(usize, usize)>,
    /// The number of slots; `None` without.
    pub(super) slots: Option<usize>,
}

/// A map of dimensions in an order, with a tensor's strides. Missing dimensions have size 1.
fn map(dims: &[i64], strides: &[i64], order: &[usize]) -> RowMap {
    let pick = |values: &[i64]| order.iter().map(|dim| values[*dim]).collect::<Dims>();
    RowMap::new(&pick(dims), &pick(strides))
}

/// Strides that give rows their logical numbers.
fn row_numbers(dims: &[i64]) -> Dims {
    let mut strides: Dims = dims.iter().map(|_| 1).collect();
    for dim in (1..dims.len()).rev() {
        strides[dim - 1] = strides[dim].saturating_mul(dims[dim].max(1));
    }
    strides
}

impl Plan {
    /// The descriptors were checked, except the dimensions of an output with slots.
    pub(super) fn new(
        (input, output): (&MemoryDesc, &MemoryDesc),
        position: &MemoryDesc,
        index_dim: i32,
        slots: bool,
    ) -> Result<Self> {
        let outer = input.ndims() - 1;
        let dims = &input.dims()[..outer];
        let index_dim = usize::try_from(index_dim).ok();
        let by_stride = input.order();
        let order = || by_stride[..=outer].iter().copied().filter(|dim| *dim != outer);
        let own = |dim: usize| {
            position.dims()[dim] == dims[dim] && dims[dim] != 1 || index_dim == Some(dim)
        };
        let tokens: ArrayVec<usize, MAX_NDIMS> = order().filter(|dim| own(*dim)).collect();
        let heads: ArrayVec<usize, MAX_NDIMS> = order().filter(|dim| !own(*dim)).collect();
        let count = |of: &[usize]| of.iter().map(|dim| dims[*dim] as usize).product::<usize>();
        let places = |strides: &[i64]| Places {
            tokens: map(dims, strides, &tokens),
            heads: map(dims, strides, &heads),
        };
        let index = index_dim.map(|dim| {
            let inner = tokens.iter().skip_while(|other| **other != dim).skip(1);
            (inner.map(|dim| dims[*dim] as usize).product(), dims[dim].max(1) as usize)
        });
        let numbers = row_numbers(dims);
        let shared =
            |dim: usize| if position.dims()[dim] == 1 { 0 } else { position.strides()[dim] };
        let position_strides: Dims = (0..outer).map(shared).collect();
        let mut plan = Self {
            tokens: count(&tokens),
            heads: count(&heads),
            input: places(input.strides()),
            output: places(output.strides()),
            input_rows: places(&numbers),
            output_rows: places(&numbers),
            positions: map(dims, &position_strides, &tokens),
            index,
            slots: None,
        };
        if slots {
            plan.use_slots((input, output), position, index_dim, &heads)?;
        }
        Ok(plan)
    }

    fn use_slots(
        &mut self,
        (input, output): (&MemoryDesc, &MemoryDesc),
        position: &MemoryDesc,
        index_dim: Option<usize>,
        heads: &[usize],
    ) -> Result<()> {
        let outer = input.ndims() - 1;
        let shared = (1..outer).all(|dim| position.dims()[dim] == 1);
        if !shared || index_dim.is_some_and(|dim| dim != 0) {
            return Err(Error::invalid(
                "position_desc: with write_slots, dimension 0 of src_desc is tokens, and the \
                 others share the position",
            ));
        }
        let own = output.ndims().wrapping_sub(input.ndims());
        if own > 1 || output.dims()[own + 1..] != input.dims()[1..] {
            return Err(Error::invalid(format_args!(
                "dst_desc: dimensions {:?} are neither slots nor pages x slots instead of the tokens of src_desc, {:?}",
                output.dims(),
                input.dims()
            )));
        }
        let (dims, strides) = (output.dims(), output.strides());
        let numbers = row_numbers(&dims[..dims.len() - 1]);
        let slot_dims = 0..own + 1;
        // One position per token, even if there is only one token.
        self.tokens = input.dims()[0] as usize;
        let step = if position.dims()[0] == 1 { 0 } else { position.strides()[0] };
        self.positions = RowMap::new(&input.dims()[..1], &[step]);
        let others: ArrayVec<usize, MAX_NDIMS> =
            heads.iter().copied().filter(|dim| *dim != 0).collect();
        self.heads = others.iter().map(|dim| input.dims()[*dim] as usize).product();
        self.input.tokens = RowMap::new(&input.dims()[..1], &input.strides()[..1]);
        self.input.heads = map(input.dims(), input.strides(), &others);
        let input_numbers = row_numbers(&input.dims()[..outer]);
        self.input_rows.tokens = RowMap::new(&input.dims()[..1], &input_numbers[..1]);
        self.input_rows.heads = map(input.dims(), &input_numbers, &others);
        let head_dims = |strides: &[i64]| map(&dims[own..], &strides[own..], &others);
        self.output = Places {
            tokens: RowMap::new(&dims[slot_dims.clone()], &strides[slot_dims.clone()]),
            heads: head_dims(strides),
        };
        self.output_rows = Places {
            tokens: RowMap::new(&dims[slot_dims.clone()], &numbers[slot_dims.clone()]),
            heads: head_dims(&numbers),
        };
        self.slots = Some(dims[slot_dims].iter().map(|dim| *dim as usize).product());
        Ok(())
    }
}
