// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstring>
#include <varve/core/message.hpp>
#include <varve/value/storage.hpp>
#include <varve/value/strided.hpp>
#include <varve/value/traits.hpp>

namespace varve {

class tensor;
struct cotangent_slot;

namespace detail {
struct tensor_block;
[[noreturn]] VARVE_COLD inline void refuse_data_of_wrapped() {
  throw transform_error("varve: data of a tensor seen through a transform was asked for; read it after the transform has returned");
}
} // namespace detail

/// The dynamic value: a reference-counted handle to strided memory with run-time dtype and shape. Copies share the data; a null handle is "absent".
/// Operators on tensors consult the calling thread's stack of transforms and modes. One allocation for small tensors, from a per-thread list.
class tensor {
public:
  constexpr tensor() noexcept = default;
  tensor(tensor const& o) noexcept;
  tensor(tensor&& o) noexcept : block_(o.block_) { o.block_ = nullptr; }
  tensor& operator=(tensor const& o) noexcept;
  tensor& operator=(tensor&& o) noexcept {
    auto* b = block_;
    block_ = o.block_;
    o.block_ = b;
    return *this;
  }
  ~tensor();

  /// Fresh row-major memory, not initialized.
  static tensor empty(dims const& sizes, varve::dtype type);
  /// A rank-0 tensor of a plain number, which raises dtypes only by category.
  template <number T>
  static tensor from_number(T v);
  /// Copies `numel(sizes)` elements from row-major memory.
  template <class T>
  static tensor from_data(T const* data, dims const& sizes);
  /// `tensor{{1.0, 2.0}}`, with a shape `tensor{{1.0, 2.0, 3.0, 4.0}, {2, 2}}`.
  template <class T, std::size_t N>
  explicit tensor(T const (&values)[N], dims const& sizes = {static_cast<index_t>(N)}) : tensor(from_data(values, check_count(N, sizes))) {}

  bool defined() const noexcept { return block_ != nullptr; }
  varve::dtype dtype() const;
  dims const& sizes() const;
  dims const& strides() const;
  index_t size(index_t axis) const { return sizes()[wrap_axis(axis, dim())]; }
  int dim() const { return sizes().n; }
  index_t numel() const { return varve::numel(sizes()); }
  bool is_contiguous() const;
  /// Made from a plain C++ number.
  bool is_number() const;
  void mark_number();
  /// Version counter of the storage, raised once per in-place operator.
  std::uint32_t version() const;
  void bump_version() const;
  /// Do two tensors share memory?
  bool shares_storage(tensor const& o) const;

  /// Pointer to the first element; the element type must be `T`. Values seen through a transform have none: `transform_error`.
  template <class T>
  T* data() const;
  /// Pointer to the first element, untyped.
  void* raw() const;
  /// The only element, converted to `T`.
  template <class T>
  T item() const;

  /// The truth of the only element, through transforms that keep it single; mapped by `vmap` it has none (`transform_error`).
  explicit operator bool() const;

  /// A tensor on the same storage with another layout (elements; the offset is relative to the storage).
  tensor with_layout(layout const& l) const;
  layout where() const;

  // Values seen through a run-time transform (design: the payload hangs off the handle).
  bool is_wrapped() const noexcept;
  static tensor wrap(tensor value, std::uint64_t layer, int level, tensor extra, cotangent_slot* slot, dims const& logical);
  std::uint64_t layer() const;
  int level() const;
  tensor const& inner() const;
  tensor const& extra() const;
  cotangent_slot* slot() const;
  /// The very same handle.
  bool is(tensor const& o) const noexcept { return block_ == o.block_; }
  detail::tensor_block const* id() const noexcept { return block_; }

private:
  static dims const& check_count(std::size_t n, dims const& sizes) {
    if (static_cast<index_t>(n) != varve::numel(sizes)) refuse::shapes_do_not_match("tensor", dims{static_cast<index_t>(n)}, sizes);
    return sizes;
  }
  explicit tensor(detail::tensor_block* b) noexcept : block_(b) {}
  static detail::tensor_block* make(dims const& sizes, varve::dtype type);
  detail::tensor_block* block_ = nullptr;
};

template <>
struct traits<tensor> {
  using base = tensor;
  static constexpr int level = 0;
  static dims shape(tensor const& t) { return t.sizes(); }
  static dims type(tensor const& t) { return dims{static_cast<index_t>(t.dtype())}; }
};

/// dtype and shape of a tensor as data, with its being a plain number.
inline meta meta_of(tensor const& t) { return {t.dtype(), t.sizes(), t.is_number()}; }

namespace detail {
/// What a tensor seen through a transform holds instead of memory.
struct wrapping {
  tensor value;
  tensor extra;
  std::uint64_t layer = 0;
  int level = 0;
  cotangent_slot* slot = nullptr;
};

struct alignas(64) tensor_block {
  reference_count refs;
  varve::dtype type;
  bool number = false;
  bool wrapped = false;
  bool contiguous = true;
  index_t offset = 0;
  varve::storage* store = nullptr;
  dims sizes, strides;
  varve::storage own;
  union {
    alignas(64) unsigned char bytes[64];
    wrapping seen;
  };
  tensor_block(dims const& s, varve::dtype t) : type(t), sizes(s) {}
  ~tensor_block() {}
};
static_assert(sizeof(tensor_block) <= block_bytes);

inline void drop_storage(storage* s) {
  if (!s->refs.drop()) return;
  if (s->embedded) give_block(reinterpret_cast<unsigned char*>(s) - offsetof(tensor_block, own));
  else {
    ::operator delete(s->data, std::align_val_t{64});
    delete s;
  }
}
inline void drop_block(tensor_block* b) {
  if (!b->refs.drop()) return;
  if (b->wrapped) {
    b->seen.~wrapping();
    give_block(b);
  } else if (b->store == &b->own) {
    drop_storage(b->store);
  } else {
    auto* s = b->store;
    give_block(b);
    drop_storage(s);
  }
}
} // namespace detail

inline tensor::tensor(tensor const& o) noexcept : block_(o.block_) {
  if (block_) block_->refs.add();
}
inline tensor& tensor::operator=(tensor const& o) noexcept {
  if (o.block_) o.block_->refs.add();
  if (block_) detail::drop_block(block_);
  block_ = o.block_;
  return *this;
}
inline tensor::~tensor() {
  if (block_) detail::drop_block(block_);
}
inline detail::tensor_block* tensor::make(dims const& sizes, varve::dtype type) { return new (detail::take_block()) detail::tensor_block(sizes, type); }

inline tensor tensor::empty(dims const& sizes, varve::dtype type) {
  auto* b = make(sizes, type);
  tensor r(b);
  index_t step = 1, count = 1;
  b->strides.n = sizes.n;
  for (int k = sizes.n - 1; k >= 0; --k) {
    b->strides.v[k] = step;
    step *= sizes.v[k] > 0 ? sizes.v[k] : 1;
    count *= sizes.v[k];
  }
  std::size_t const bytes = static_cast<std::size_t>(count) * static_cast<std::size_t>(itemsize(type));
  b->store = &b->own;
  b->own.embedded = true;
  b->own.bytes = bytes;
  b->own.data = b->bytes;
  if (bytes > sizeof b->bytes) [[unlikely]] {
    auto* s = new storage;
    b->store = s;
    s->bytes = bytes;
    s->data = ::operator new(bytes, std::align_val_t{64});
  }
  return r;
}
inline varve::dtype tensor::dtype() const { return block_->type; }
inline dims const& tensor::sizes() const { return block_->sizes; }
inline dims const& tensor::strides() const { return block_->strides; }
inline bool tensor::is_contiguous() const { return block_->contiguous; }
inline bool tensor::is_number() const { return block_->number; }
inline void tensor::mark_number() { block_->number = true; }
inline layout tensor::where() const { return {block_->sizes, block_->strides, block_->offset, true}; }
inline bool tensor::is_wrapped() const noexcept { return block_->wrapped; }
inline std::uint64_t tensor::layer() const { return block_->wrapped ? block_->seen.layer : 0; }
inline int tensor::level() const { return block_->wrapped ? block_->seen.level : 0; }
inline tensor const& tensor::inner() const { return block_->seen.value; }
inline tensor const& tensor::extra() const { return block_->seen.extra; }
inline cotangent_slot* tensor::slot() const { return block_->seen.slot; }
inline std::uint32_t tensor::version() const { return is_wrapped() ? inner().version() : block_->store->version; }
inline void tensor::bump_version() const { ++block_->store->version; }
inline bool tensor::shares_storage(tensor const& o) const {
  if (is_wrapped()) return inner().shares_storage(o);
  return o.is_wrapped() ? shares_storage(o.inner()) : block_->store == o.block_->store;
}
inline void* tensor::raw() const {
  if (block_->wrapped) [[unlikely]]
    detail::refuse_data_of_wrapped();
  return static_cast<unsigned char*>(block_->store->data) + block_->offset * itemsize(block_->type);
}
template <class T>
T* tensor::data() const {
  if (dtype_of_type<T>() != block_->type)
    throw dtype_error((std::string("varve: data: the tensor holds ") + name(block_->type) + ", not " + name(dtype_of_type<T>())).c_str());
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
  tensor r = empty(sizes, dtype_of_type<T>());
  if (r.numel() > 0) std::memcpy(r.raw(), data, sizeof(T) * static_cast<std::size_t>(r.numel()));
  return r;
}
template <class T>
T tensor::item() const {
  if (numel() != 1) refuse::argument_is_invalid("item", "the tensor must have exactly one element");
  return on_dtype(block_->type, "item", [&]<class E>() { return static_cast<T>(*static_cast<E const*>(raw())); });
}
inline tensor::operator bool() const {
  tensor const* t = this;
  while (t->is_wrapped()) {
    if (!(t->sizes() == t->inner().sizes()))
      throw transform_error("varve: a value mapped by vmap has no single truth value; use where, cond or while_loop instead of if");
    t = &t->inner();
  }
  return t->item<bool>();
}
inline tensor tensor::with_layout(layout const& l) const {
  auto* b = make(l.sizes, block_->type);
  b->strides = l.strides;
  b->offset = l.offset;
  b->contiguous = l.contiguous();
  b->store = block_->store;
  b->store->refs.add();
  return tensor(b);
}
inline tensor tensor::wrap(tensor value, std::uint64_t layer, int level, tensor extra, cotangent_slot* slot, dims const& logical) {
  auto* b = make(logical, value.dtype());
  b->number = value.is_number();
  b->wrapped = true;
  new (&b->seen) detail::wrapping{static_cast<tensor&&>(value), static_cast<tensor&&>(extra), layer, level, slot};
  return tensor(b);
}

} // namespace varve
