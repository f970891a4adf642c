// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/value/stand_ins.hpp>
#include <varve/value/tensor_block.hpp>

/// @file
/// The members of `tensor` for histories, versions and shared memory.
namespace varve {

inline edge const& tensor::history() const { return block_->history; }
inline void tensor::set_history(edge e) const {
  block_->history = static_cast<edge&&>(e);
  bool const is_view = block_->base.defined();
  if (!is_wrapped()) {
    bool const any = block_->history || is_view;
    auto const keys = dispatch_key_set::of_bits(any ? block_->keys.bits | dispatch_key_set::history_bit
                                                    : block_->keys.bits & ~dispatch_key_set::history_bit);
    if (!(keys == block_->keys)) block_->keys = keys; // another thread may read them while it finds a view's history
  }
  if (is_view) block_->seen_version.store(writes_shown(), std::memory_order_release);
}
inline void tensor::set_base(tensor const& base, detail::view_origin o) const {
  block_->base = base;
  if (base.defined()) base.note_kept();
  block_->origin = o;
  block_->seen_version.store(writes_shown(), std::memory_order_release);
}
inline tensor const& tensor::base() const { return block_ ? block_->base : *this; }
inline bool tensor::is_overtaken() const {
  return block_->seen_version.load(std::memory_order_acquire) != writes_shown();
}
inline std::uint32_t tensor::writes_shown() const {
  bool const returned =
      block_->origin == detail::view_origin::function || block_->origin == detail::view_origin::custom;
  return returned ? block_->base.writes() : writes();
}
inline detail::view_origin tensor::origin() const { return block_->origin; }
inline void tensor::set_origin(detail::view_origin o) const { block_->origin = o; }
inline bool tensor::is_in_recorded_memory() const {
  return has_history() || (block_ && block_->base.defined() && !is_wrapped() && block_->base.block_->history);
}
inline bool tensor::requires_grad() const {
  if (has_history()) return true;
  if (is_wrapped() && has_derivatives(dtype()))
    for (tensor const* t = this; t->is_wrapped(); t = &t->inner())
      if (detail::is_traced_for_gradient(t->layer()))
        refuse::with<transform_error>(
            "varve: requires_grad: the function of a higher-order operator is traced before its gradient is taken, and "
            "does not know which of its values need one; ask outside of it");
  return false;
}
inline bool tensor::has_history() const {
  if (!block_) return false;
  // Check the base first: another thread may be finding the history of a view now.
  if (block_->base.defined() && !is_wrapped() && block_->base.block_->history)
    // A view made while nothing was recorded gets a history only when its memory is written.
    if ((block_->origin != detail::view_origin::no_grad && block_->origin != detail::view_origin::inference) ||
        is_overtaken())
      return true;
  if (block_->history) return true;
  return is_wrapped() && inner().has_history();
}
inline std::uint32_t tensor::version() const {
  if (is_wrapped()) return block_->store ? writes() : inner().version();
  if (block_ && block_->inference) [[unlikely]]
    refuse::with<autograd_error>("varve: version: a tensor made in inference mode has no version counter");
  return writes();
}
inline std::uint32_t tensor::writes() const {
  if (!block_) [[unlikely]]
    detail::refuse_undefined("version");
  return is_wrapped() && !block_->store ? inner().writes()
                                        : (block_->counter ? block_->counter : block_->store)->version;
}
inline void tensor::set_version(std::uint32_t v) const {
  if (is_wrapped() && !block_->store) return inner().set_version(v);
  (block_->counter ? block_->counter : block_->store)->version = v;
}
inline void tensor::bump_version() const { set_version(writes() + 1); }
inline bool tensor::is_view() const { return base().defined(); }
inline bool tensor::is_inference() const { return block_ && block_->inference; }
inline bool tensor::is_unique() const {
  return block_->refs.n.load(std::memory_order_relaxed) == 1 &&
         ((is_wrapped() && !block_->store) ||
          (block_->store->refs.n.load(std::memory_order_relaxed) == 1 && !block_->store->borrowed));
}
inline void tensor::set_extra(tensor const& t) const {
  block_->seen.extra = t;
  if (block_->base.defined()) block_->seen_version.store(writes_shown(), std::memory_order_release);
}
inline bool tensor::has_own_memory() const noexcept {
  return block_->store->refs.n.load(std::memory_order_relaxed) == 1;
}
inline bool tensor::shares_storage(tensor const& o) const {
  if (!block_ || !o.block_) return false;
  if (is_wrapped() && !block_->store) return inner().shares_storage(o);
  if (o.is_wrapped() && !o.block_->store) return shares_storage(o.inner());
  storage const *const mine = block_->store, *const other = o.block_->store;
  bool const any_stands_in = (mine && mine->stands_in) || (other && other->stands_in);
  return mine == other || (any_stands_in && detail::memory_stand_ins::are_one(mine, other));
}
inline bool tensor::stands_in() const {
  return is_wrapped() && !block_->store ? inner().stands_in() : block_ && block_->store && block_->store->stands_in;
}
inline bool tensor::is_made_since(std::uint32_t epoch) const {
  if (is_wrapped() && !block_->store) return inner().is_made_since(epoch);
  return block_->store->epoch - epoch <= this_thread_epoch - epoch; // false on other threads, whatever the time
}
inline void tensor::alias_storage_of(tensor const& o) const {
  if (block_->store == o.block_->store || is_wrapped() || o.is_wrapped()) return;
  auto* const old = block_->store;
  block_->store = o.block_->store;
  if (block_->store != &block_->own) block_->store->refs.add(); // it owns a share of its own storage already
  if (!block_->counter && (block_->counter = o.block_->counter)) block_->counter->refs.add(); // the counter of `data()`
  if (old != &block_->own) detail::drop_storage(old);
}
inline void tensor::note_kept() const { block_->kept.store(true, std::memory_order_relaxed); }
inline bool tensor::may_be_kept() const {
  return block_->base.defined() || block_->kept.load(std::memory_order_relaxed);
}
inline void tensor::own_version() const {
  auto* const fresh = new storage;
  if (block_->counter) detail::drop_storage(block_->counter);
  block_->counter = fresh;
}
inline seen_state* tensor::state() const { return is_wrapped() ? block_->seen.state : nullptr; }
inline tensor tensor::current() const { return block_->seen.state ? block_->seen.state->current(*this) : inner(); }
inline void tensor::set_inner(tensor const& t) const { block_->seen.value = t; }
inline void tensor::set_state(seen_state* s, tensor const& shares_with) const {
  block_->seen.state = s;
  if (shares_with.defined()) (block_->store = shares_with.block_->store)->refs.add();
  else block_->store = new storage;
}
inline void tensor::take_memory_of(tensor const& y) const {
  auto *const b = block_, *const from = y.block_;
  if (b == from) return;
  auto* const old = b->store;
  bool const inside = old == &b->own;
  if (!b->counter) {
    // The version counter remains that of the old memory, which its aliases share.
    b->counter = old;
    if (!inside) old->refs.add();
  }
  b->store = from->store;
  if (b->store != &b->own) b->store->refs.add(); // it owns a share of its own storage already
  b->sizes = from->sizes;
  b->strides = from->strides;
  b->offset = from->offset;
  b->contiguous = from->contiguous;
  b->keys = (b->keys - dispatch_key_set(dispatch_key::complex_value)) | detail::keys_of(from->type);
  b->type = from->type;
  if (b->base.defined()) b->base = tensor();
  if (!inside) detail::drop_storage(old);
}
inline void tensor::become_view(tensor const& y) const {
  auto *const b = block_, *const from = y.block_;
  b->sizes = from->sizes, b->strides = from->strides, b->offset = from->offset, b->contiguous = from->contiguous;
  if (b->kind == detail::payload::subclass) {
    std::swap(b->object, from->object);
    b->custom = from->custom;
  } else if (b->kind == detail::payload::seen) {
    std::swap(b->seen.value, from->seen.value);
    std::swap(b->seen.extra, from->seen.extra);
    std::swap(b->seen.state, from->seen.state);
  }
}
inline void tensor::become_alias(tensor const& y) const {
  auto *const b = block_, *const from = y.block_;
  b->sizes = from->sizes, b->strides = from->strides, b->offset = from->offset, b->contiguous = from->contiguous;
  b->type = from->type, b->custom = from->custom;
  if (b->object != from->object) {
    b->object->was_replaced();
    detail::keep_object(from->object);
    detail::drop_object(b->object);
    b->object = from->object;
  }
  alias_storage_of(y);
  if (b->base.defined()) b->base = tensor();
}

namespace detail {
/// Returns the dimensions ordered by stride, the largest first. The first `in_front` dimensions are left out.
inline dims memory_order(layout const& l, int in_front) {
  dims r;
  for (int k = in_front; k < l.sizes.n; ++k) {
    int at = r.n;
    while (at > 0 && index_t(l.strides[static_cast<int>(r[at - 1])]) < index_t(l.strides[k])) --at;
    r.insert(at, k);
  }
  return r;
}
/// True if the elements of a layout fill their memory without gaps, in any order of dimensions.
inline bool is_dense(layout const& l, int in_front = 0) {
  if (l.contiguous()) return true;
  layout lies = l;
  dims const order = memory_order(l, in_front);
  for (int k = 0; k < order.n; ++k) {
    lies.sizes[in_front + k] = l.sizes[static_cast<int>(order[k])];
    lies.strides[in_front + k] = l.strides[static_cast<int>(order[k])];
  }
  return lies.contiguous();
}
/// Returns the layout of a value in the memory below all transforms, with the dimensions that the function sees. Mapped
/// dimensions stand in front.
inline layout memory_layout(tensor const& t) {
  tensor const* m = &t;
  while (m->is_wrapped() && !m->state()) m = &m->inner();
  layout const l = m->state() ? m->state()->layout_shown() : m->where();
  int const mapped = l.sizes.n - t.dim();
  return mapped ? layout{l.sizes.sub(mapped, l.sizes.n), l.strides.sub(mapped, l.strides.n), l.offset, true} : l;
}
} // namespace detail
} // namespace varve
