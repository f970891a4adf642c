// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/value/seen_state.hpp>
#include <varve/value/subclass.hpp>
#include <varve/value/tensor.hpp>

/// @file
/// The contents of a tensor's handle, and the members of `tensor` that access them.
namespace varve {

namespace detail {
/// Returns the keys that a tensor has because of its dtype.
constexpr dispatch_key_set keys_of(dtype t) {
  return is_complex(t) ? dispatch_key_set(dispatch_key::complex_value) : dispatch_key_set();
}
/// The contents of a tensor seen through a transform, in place of memory.
struct wrapping {
  tensor value;
  tensor extra;
  std::uint64_t layer = 0;
  int level = 0;
  seen_state* state = nullptr;

  wrapping(tensor&& v, tensor&& e, std::uint64_t l, int n)
      : value(static_cast<tensor&&>(v)), extra(static_cast<tensor&&>(e)), layer(l), level(n) {}
  wrapping(wrapping const&) = delete;
  wrapping& operator=(wrapping const&) = delete;
  ~wrapping() {
    if (state) [[unlikely]]
      delete state;
  }
};
struct alignas(64) tensor_block {
  reference_count refs;
  dispatch_key_set keys;
  varve::dtype type;
  payload kind = payload::memory;
  bool number = false;
  bool contiguous = true;
  bool custom = false; // the object computes sizes or strides
  view_origin origin = view_origin::usual;
  bool inference = false; // made in inference mode: no version counter, no history
  extent offset = 0;
  varve::storage* store = nullptr;
  varve::storage* counter = nullptr; // whose version counter is used, if not that of `store`
  edge history;
  tensor base;
  std::atomic<std::uint32_t> seen_version{0}; // of the base, when the view's history was found; stored last
  std::atomic<bool> kept{false};              // a node may have saved it, or a view of it, for a gradient
  dims sizes, strides;
  varve::storage own;
  union {
    alignas(64) unsigned char bytes[64];
    wrapping seen;
    subclass_object* object;
  };
  tensor_block(dims const& s, varve::dtype t) : keys(default_keys | keys_of(t)), type(t), sizes(s) {}
  tensor_block(dims const& s, dims const& steps, varve::dtype t)
      : keys(default_keys | keys_of(t)), type(t), sizes(s), strides(steps) {}
  /// Uses the bytes inside the block as its memory.
  void embed(std::size_t n) {
    store = &own;
    own.embedded = true;
    own.bytes = n;
    own.data = bytes;
  }
  ~tensor_block() {}
};
static_assert(sizeof(tensor_block) <= block_bytes);

inline constexpr dispatch_key_set meta_keys{dispatch_key::meta, dispatch_key::inplace_or_view,
                                            dispatch_key::autograd_meta};

void drop_storage(storage* s);
/// Destroys a block whose last reference was dropped, if more than memory inside it must be freed.
void end_unusual_block(tensor_block* b);
void end_block(tensor_block* b);
/// Drops a reference. Out of line and without a frame, since most references are not the last.
VARVE_NOINLINE inline void drop_block(tensor_block* b) {
  if (b->refs.drop()) end_block(b);
}
} // namespace detail

inline tensor::tensor(tensor const& o) noexcept : block_(o.block_) {
  if (block_) block_->refs.add();
}
inline tensor& tensor::operator=(tensor const& o) & noexcept {
  auto* const old = block_;
  block_ = o.block_; // read before the old block is freed: o may lie inside it
  if (block_) block_->refs.add();
  if (old) detail::drop_block(old);
  return *this;
}
inline tensor::~tensor() {
  if (block_) detail::drop_block(block_);
}
inline detail::tensor_block* tensor::make(dims const& sizes, varve::dtype type) {
  return new (detail::take_block()) detail::tensor_block(sizes, type);
}
/// Allocates a tensor. Rare cases are handled in tail calls, so that this function needs no frame.
inline tensor tensor::empty(dims const& sizes, varve::dtype type) {
  if (!detail::free_blocks<detail::block_bytes>.first) [[unlikely]]
    return empty_of_new_block(sizes, type);
  auto* b = make(sizes, type);
  std::size_t step = 1, count = 1;
  index_t all = 0;
  b->strides.n = sizes.n;
  for (int k = sizes.n - 1; k >= 0; --k) {
    b->strides.v[k] = static_cast<index_t>(step);
    index_t const size = sizes.v[k].bits;
    all |= size;
    step *= size > 0 ? static_cast<std::size_t>(size) : 1;
    count *= static_cast<std::size_t>(size);
  }
  if (extent::any_symbol(all)) [[unlikely]]
    return empty_of_numbers(b, sizes);
  std::size_t const bytes = count * static_cast<std::size_t>(itemsize(type));
  b->inference = this_thread_inference;
  if (bytes <= sizeof b->bytes && !this_thread_storage_observer) [[likely]] {
    b->embed(bytes);
    return tensor(b);
  }
  return allocated(b, bytes);
}
inline varve::dtype tensor::dtype() const {
  if (!block_) [[unlikely]]
    detail::refuse_undefined("dtype");
  return block_->type;
}
VARVE_INLINE dims const& tensor::sizes() const {
  if (!block_ || block_->custom) [[unlikely]]
    return unusual_sizes();
  return block_->sizes;
}
inline dims const& tensor::strides() const {
  if (!block_) [[unlikely]]
    detail::refuse_undefined("strides");
  if (is_wrapped() && dim() == inner().dim()) return inner().strides();
  if (block_->custom) [[unlikely]]
    if (dims const* d = block_->object->strides()) return *d;
  return block_->strides;
}
inline bool tensor::is_contiguous() const {
  if (!block_) [[unlikely]]
    detail::refuse_undefined("is_contiguous");
  return block_->contiguous;
}
inline bool tensor::is_number() const { return block_->number; }
inline void tensor::mark_number() { block_->number = true; }
inline layout tensor::where() const { return {block_->sizes, block_->strides, block_->offset, true}; }
inline bool tensor::is_wrapped() const noexcept { return block_ && block_->kind == detail::payload::seen; }
inline std::uint64_t tensor::layer() const { return is_wrapped() ? block_->seen.layer : 0; }
inline int tensor::level() const {
  if (!is_wrapped()) return 0;
  return detail::is_at_work(layer()) ? block_->seen.level : -1;
}
inline tensor const& tensor::inner() const { return block_->seen.value; }
inline tensor const& tensor::extra() const { return block_->seen.extra; }
VARVE_INLINE void* tensor::raw(index_t item) const {
  if (block_->kind != detail::payload::memory) [[unlikely]]
    return raw_inside(item);
  return static_cast<unsigned char*>(block_->store->data) + block_->offset.bits * item;
}
inline void* tensor::raw() const { return raw(itemsize(dtype())); }
template <class T>
T* tensor::data() const {
  if (detail::stored_dtype<T>() != dtype())
    refuse::with<dtype_error>((std::string("varve: data: the tensor holds ") + name(block_->type) + ", not " +
                               name(detail::stored_dtype<T>()))
                                  .c_str());
  if (detail::watches_reads) [[unlikely]]
    detail::watches_reads->memory(*this, detail::users_code);
  return static_cast<T*>(raw());
}
template <number T>
tensor tensor::from_number(T v) {
  tensor r = empty({}, dtype_of_type<T>());
  std::memcpy(r.block_->bytes, &v, sizeof v);
  r.block_->number = true;
  return r;
}
template <class T>
tensor tensor::from_data(T const* data, dims const& sizes) {
  tensor r = empty(sizes, detail::stored_dtype<T>());
  if (r.numel() > 0) std::memcpy(r.raw(), data, sizeof(T) * static_cast<std::size_t>(r.numel()));
  if (detail::lifts_literals) [[unlikely]]
    return detail::lifts_literals->lifted(r);
  return r;
}
namespace detail {
/// Appends the elements of nested ranges in order and collects the sizes. Ranges of unequal length are refused.
template <class E, class R>
void flatten_range(R const& range, std::vector<E>& elements, dims& sizes, int depth) {
  index_t n = 0;
  for (auto const& v : range) {
    ++n;
    if constexpr (number<decltype(v)>) elements.push_back(static_cast<E>(v));
    else flatten_range(v, elements, sizes, depth + 1);
  }
  while (sizes.n <= depth) sizes.push_back(-1);
  if (known_equal(sizes[depth], -1)) sizes[depth] = n;
  else if (!known_equal(sizes[depth], n)) refuse::argument_is_invalid("tensor", "the rows are not of one length");
}
template <class R>
struct number_in_range {
  using type = typename number_in_range<range_element<R>>::type;
};
template <number N>
struct number_in_range<N> {
  using type = N;
};
/// The element type in which a number of a C++ type is stored: its own, if a dtype has it, otherwise int64 or double.
template <class N>
using element_held = std::conditional_t<std::is_same_v<N, bool> || std::is_same_v<N, float> ||
                                            std::is_same_v<N, double> || std::is_same_v<N, std::uint8_t> ||
                                            std::is_same_v<N, std::int32_t> || std::is_same_v<N, std::int64_t>,
                                        N, std::conditional_t<std::is_integral_v<N>, std::int64_t, double>>;
} // namespace detail
template <class R>
tensor tensor::of_range(R const& range) {
  using N = typename detail::number_in_range<R>::type;
  using E = detail::element_held<N>;
  if constexpr (std::is_same_v<E, N> && requires {
                  { range.data() } -> std::same_as<E const*>;
                  range.size();
                }) {
    return from_data(static_cast<E const*>(range.data()), dims{static_cast<index_t>(range.size())});
  } else {
    using stored = std::conditional_t<std::is_same_v<E, bool>, std::uint8_t, E>; // std::vector<bool> has no elements
    std::vector<stored> elements;
    dims sizes;
    detail::flatten_range(range, elements, sizes, 0);
    for (int k = 0; k < sizes.n; ++k)
      if (known_equal(sizes[k], -1)) sizes[k] = 0;
    if constexpr (std::is_same_v<E, bool>) return from_data(reinterpret_cast<bool const*>(elements.data()), sizes);
    else return from_data(elements.data(), sizes);
  }
}
template <class T>
std::vector<T> tensor::to_vector() const {
  if (is_wrapped() && detail::is_traced(layer())) [[unlikely]]
    detail::refuse_traced_number();
  if (detail::watches_reads) [[unlikely]]
    detail::watches_reads->memory(*this, detail::users_code);
  dims const s = sizes();
  std::vector<T> r;
  r.reserve(static_cast<std::size_t>(numel()));
  detail::on_elements_as<T>(dtype(), "to_vector", [&](auto const& read) {
    if (numel() == 0) return;
    void const* const first = raw();
    dims const steps = strides();
    for_each_index(s, [&](dims const& i) {
      index_t o = 0;
      for (int k = 0; k < i.n; ++k) o += i[k].bits * steps[k].bits;
      r.push_back(read(first, o));
    });
  });
  return r;
}
template <class T, index_t... D>
array<T, D...> tensor::to_array() const {
  if (!(sizes() == ints<D...>::to_dims())) refuse::shapes_do_not_match("to_array", sizes(), ints<D...>::to_dims());
  if (dtype() != dtype_of_type<T>()) refuse::dtype_is_not_supported("to_array of another type:", name(dtype()));
  array<T, D...> r{};
  std::vector<std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>> const all =
      to_vector<std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>>();
  for (std::size_t k = 0; k < all.size(); ++k) r.data[k] = static_cast<T>(all[k]);
  return r;
}
template <class T>
T tensor::item() const {
  if (is_wrapped() && detail::is_traced(layer())) [[unlikely]]
    detail::refuse_traced_number();
  if (is_wrapped() && (state() || sizes() == inner().sizes())) return current().item<T>();
  if (numel() != 1) refuse::item_of_other_than_one_element(sizes());
  if (detail::watches_reads) [[unlikely]]
    detail::watches_reads->number(*this);
  if (block_->kind == detail::payload::subclass) [[unlikely]]
    return block_->object->constant(*this).item<T>();
  return detail::on_elements_as<T>(block_->type, "item", [&](auto const& read) { return read(raw(), 0); });
}
inline tensor::operator bool() const {
  if (is_wrapped() && !state() && !(sizes() == inner().sizes()))
    refuse::with<transform_error>(
        "varve: a value mapped by vmap has no single truth value; use where, cond or while_loop instead of if");
  return is_wrapped() && !detail::is_traced(layer()) ? static_cast<bool>(current()) : item<bool>();
}
VARVE_INLINE tensor tensor::wrap(tensor value, std::uint64_t layer, int level, tensor extra, edge history,
                                 dims const& logical) {
  auto* b = make(logical, value.dtype());
  b->number = value.is_number();
  b->contiguous = value.is_contiguous();
  b->kind = detail::payload::seen;
  b->keys = dispatch_key_set(dispatch_key::transform) | detail::keys_of(value.dtype());
  b->history = static_cast<edge&&>(history);
  new (&b->seen) detail::wrapping(static_cast<tensor&&>(value), static_cast<tensor&&>(extra), layer, level);
  return tensor(b);
}

inline dispatch_key_set tensor::keys() const noexcept { return block_->keys; }
inline bool tensor::has_data() const noexcept { return block_ && block_->kind == detail::payload::memory; }
inline subclass_object* tensor::object() const noexcept {
  return block_ && block_->kind == detail::payload::subclass ? block_->object : nullptr;
}
inline tensor tensor::with_keys(dispatch_key_set keys) const {
  tensor r = alias();
  r.block_->keys = keys | detail::keys_of(r.block_->type);
  return r;
}
} // namespace varve

#include <varve/value/tensor_history.hpp> // further members

#if VARVE_DEFINES
namespace varve {
VARVE_LIBRARY_MEMBER tensor subclass_object::constant(tensor const&) const {
  detail::refuse_data(detail::payload::subclass);
}
VARVE_LIBRARY tensor subclass_object::either(tensor const&, tensor const&) const { return {}; }
VARVE_LIBRARY tensor subclass_object::in_its_mode(tensor (*make)(void const*), void const* f) const { return make(f); }
} // namespace varve
namespace varve::detail {
VARVE_LIBRARY void drop_storage(storage* s) {
  if (!s->refs.drop()) return;
  tell_freed(s);
  if (s->embedded) give_block(reinterpret_cast<unsigned char*>(s) - offsetof(tensor_block, own));
  else {
    if (!s->borrowed && s->data) give_data(s->data, s->bytes);
    if (!s->releases) [[likely]]
      return delete s;
    auto* const r = static_cast<released_storage*>(s);
    r->release(r->owner);
    delete r;
  }
}
VARVE_NOINLINE VARVE_LIBRARY void end_unusual_block(tensor_block* b) {
  if (b->base.defined()) b->base = tensor();
  if (b->kind == payload::seen) {
    b->seen.~wrapping();
    if (!b->store && !b->counter) [[likely]]
      return give_block(b);
  }
  if (b->kind == payload::subclass) drop_object(b->object);
  // If the storage inside the block was used, the block holds one reference to it while it lives. Whoever drops the
  // last reference frees the block.
  storage *const s = b->store, *const c = b->counter, *const inside = &b->own;
  if (!b->own.embedded) {
    give_block(b);
  } else if (inside->refs.drop()) {
    tell_freed(inside);
    give_block(b);
  }
  if (s && s != inside) drop_storage(s);
  if (c && c != inside) [[unlikely]]
    drop_storage(c);
}
VARVE_NOINLINE VARVE_LIBRARY void end_block(tensor_block* b) {
  if (b->history) drop_node(b->history.release());
  // Fast path: an ordinary small tensor with its memory inside the block and nothing attached to it.
  if (b->base.defined() || b->counter || b->kind != payload::memory || b->store != &b->own || b->own.observer)
    return end_unusual_block(b);
  if (b->own.refs.drop()) give_block(b);
}
} // namespace varve::detail

namespace varve {
/// Gives a tensor memory outside its block, or memory that is observed.
VARVE_NOINLINE VARVE_LIBRARY tensor tensor::allocated(detail::tensor_block* b, std::size_t bytes) {
  tensor r(b);
  if (bytes <= sizeof b->bytes) b->embed(bytes);
  else (b->store = new storage)->allocate(bytes);
  detail::tell_allocated(b->store);
  return r;
}
/// Makes a tensor in memory from symbolic sizes, which it replaces by their numbers.
VARVE_COLD VARVE_LIBRARY tensor tensor::empty_of_numbers(detail::tensor_block* b, dims const& sizes) {
  tensor const unfinished(b); // keeps the block
  dims numbers = sizes;
  for (int k = 0; k < numbers.n; ++k)
    if ((numbers[k] = static_cast<index_t>(sizes[k])) < 0)
      refuse::argument_is_invalid("tensor", "a size is negative, or greater than any memory");
  return empty(numbers, unfinished.dtype());
}
VARVE_NOINLINE VARVE_LIBRARY tensor tensor::empty_of_new_block(dims const& sizes, varve::dtype type) {
  return detail::provide_block(), empty(sizes, type);
}
VARVE_COLD VARVE_LIBRARY dims const& tensor::unusual_sizes() const {
  if (!block_) detail::refuse_undefined("sizes");
  dims const* const own = block_->object->sizes();
  return own ? *own : block_->sizes;
}
/// Returns the memory of a value whose transform has ended.
VARVE_COLD VARVE_LIBRARY void* tensor::raw_inside(index_t item) const {
  if (!is_wrapped() || !(state() || sizes() == inner().sizes()) || detail::is_at_work(layer()))
    detail::refuse_data(block_->kind);
  if (state()) (void)current(); // afterwards the value no longer changes
  return inner().raw(item);
}
VARVE_LIBRARY tensor tensor::of_literals(detail::literal const* values, dims const& sizes) {
  std::size_t const n = static_cast<std::size_t>(varve::numel(sizes).number());
  int category = 0;
  for (std::size_t k = 0; k < n; ++k) category = values[k].category > category ? values[k].category : category;
  if (n == 0) category = 2;
  tensor r = empty(sizes, category == 0 ? dtype::bool_ : category == 1 ? dtype::int64 : dtype::float64);
  for (std::size_t k = 0; k < n; ++k)
    if (category == 0) static_cast<bool*>(r.raw())[k] = values[k].as_integer != 0;
    else if (category == 1) static_cast<std::int64_t*>(r.raw())[k] = values[k].as_integer;
    else static_cast<double*>(r.raw())[k] = values[k].as_double;
  return detail::lifts_literals ? detail::lifts_literals->lifted(r) : r;
}
VARVE_LIBRARY tensor tensor::from_blob(void* data, dims const& sizes, dims const& strides, varve::dtype type,
                                       void (*release)(void* owner), void* owner) {
  tensor const r = from_blob(data, sizes, strides, type);
  auto* const s = new released_storage;
  s->data = data;
  s->borrowed = s->releases = true;
  s->release = release, s->owner = owner;
  delete std::exchange(r.block_->store, s);
  return r;
}
VARVE_LIBRARY tensor tensor::from_blob(void* data, dims const& sizes, dims const& strides, varve::dtype type) {
  auto* b = make(sizes, type);
  tensor r(b);
  auto* s = b->store = new storage;
  s->data = data;
  s->borrowed = true;
  b->sizes = sizes.as_numbers(), b->strides = strides.as_numbers();
  b->contiguous = layout{b->sizes, b->strides, 0, true}.contiguous();
  return r;
}
VARVE_INLINE tensor tensor::shared(dims const& sizes, dims const& strides, extent offset, bool contiguous) const {
  if (!block_) [[unlikely]]
    detail::refuse_undefined("alias");
  if (block_->kind == detail::payload::seen) [[unlikely]]
    detail::refuse_alias_of_seen();
  auto* const b = new (detail::take_block()) detail::tensor_block(sizes, strides, block_->type);
  b->offset = offset;
  b->contiguous = contiguous;
  b->keys = dispatch_key_set::of_bits(block_->keys.bits & ~dispatch_key_set::history_bit);
  b->inference = block_->inference;
  if ((b->counter = block_->counter)) b->counter->refs.add();
  b->kind = block_->kind;
  if (b->kind == detail::payload::subclass) detail::keep_object(b->object = block_->object);
  b->store = block_->store;
  b->store->refs.add();
  return tensor(b);
}
VARVE_INLINE tensor tensor::as_view(tensor r, bool is_view) const {
  auto* const b = r.block_;
  if (is_view && !block_->inference) {
    new (&b->base) tensor(block_->base.defined() ? block_->base : *this); // the member had no value before
    b->base.note_kept();
    b->origin = block_->origin;
    b->keys = dispatch_key_set::of_bits(b->keys.bits | dispatch_key_set::history_bit);
    b->seen_version.store(version(), std::memory_order_relaxed);
  }
  return r;
}
VARVE_LIBRARY tensor tensor::with_layout(layout const& l, bool is_view) const {
  index_t all = l.offset.bits;
  bool const contiguous = l.numbers_follow(all);
  if (extent::any_symbol(all)) [[unlikely]]
    return with_any_layout(l, is_view);
  return as_view(shared(l.sizes, l.strides, l.offset, contiguous), is_view);
}
VARVE_LIBRARY tensor tensor::reinterpreted(layout const& l, varve::dtype type) const {
  tensor const r = as_view(shared(l.sizes, l.strides, l.offset, l.contiguous()), true);
  auto* const b = r.block_;
  b->type = type;
  b->keys = (b->keys - dispatch_key_set(dispatch_key::complex_value)) | detail::keys_of(type);
  if (b->base.defined()) b->origin = detail::view_origin::other_dtype;
  return r;
}
/// Makes a view in memory from symbolic sizes, strides or offset, which it replaces by their numbers.
VARVE_COLD VARVE_LIBRARY tensor tensor::with_any_layout(layout const& l, bool is_view) const {
  if (!has_data()) return as_view(shared(l.sizes, l.strides, l.offset, l.contiguous()), is_view);
  layout const numbers{l.sizes.as_numbers(), l.strides.as_numbers(), static_cast<index_t>(l.offset), true};
  return as_view(shared(numbers.sizes, numbers.strides, numbers.offset, numbers.contiguous()), is_view);
}
VARVE_LIBRARY tensor tensor::alias() const {
  if (!block_) [[unlikely]]
    detail::refuse_undefined("alias");
  return shared(block_->sizes, block_->strides, block_->offset, block_->contiguous);
}
VARVE_LIBRARY tensor tensor::meta(dims const& sizes, varve::dtype type) {
  tensor r = of_object(nullptr, sizes, {}, type, detail::meta_keys);
  r.block_->kind = detail::payload::nothing;
  return r;
}
VARVE_LIBRARY tensor tensor::as_meta() const {
  tensor r = alias();
  auto* const b = r.block_;
  if (b->kind == detail::payload::subclass) detail::drop_object(b->object);
  b->object = nullptr;
  b->kind = detail::payload::nothing;
  b->keys = detail::meta_keys | detail::keys_of(b->type);
  return r;
}
VARVE_LIBRARY tensor tensor::of_object(subclass_object* object, dims const& sizes, dims const& strides,
                                       varve::dtype type, dispatch_key_set keys, extent offset) {
  auto* b = make(sizes, type);
  tensor r(b);
  layout const l = strides.n == sizes.n && sizes.n ? layout{sizes, strides, 0, true} : contiguous_layout(sizes);
  b->strides = l.strides;
  b->offset = offset;
  b->contiguous = l.contiguous();
  b->keys = keys | detail::keys_of(type);
  b->store = &b->own;
  b->own.embedded = true;
  b->kind = detail::payload::subclass;
  b->object = object;
  b->custom = object && (object->sizes() || object->strides());
  return r;
}
} // namespace varve
#endif
