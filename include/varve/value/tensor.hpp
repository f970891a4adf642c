// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dispatch_key.hpp>
#include <varve/core/message.hpp>
#include <varve/value/array.hpp>
#include <varve/value/grad_node.hpp>
#include <varve/value/literal.hpp>
#include <varve/value/member_operators.hpp>
#include <varve/value/payload.hpp>
#include <varve/value/storage.hpp>
#include <varve/value/strided.hpp>
#include <varve/value/traits.hpp>
#include <varve/value/watchers.hpp>

#include <cstring>
#include <initializer_list>
#include <vector>

namespace varve {

class tensor;
class subclass_object;
class seen_state;
class hook_handle;
namespace autograd {
class node;
}
namespace detail {
struct tensor_block;
/// The origin of a view, which may forbid in-place writes to it.
enum class view_origin : unsigned char { usual, no_grad, inference, many, custom, leaf, function, other_dtype };
/// True if the transform with this layer number is still active on this thread (dispatch/thread_state.hpp).
bool is_at_work(std::uint64_t layer);
/// True if the layer is a trace that is active on this thread (dispatch/thread_state.hpp).
bool is_traced(std::uint64_t layer);
/// True if the layer is an active trace of a function whose gradient is taken afterwards, through the traced graph
/// (dispatch/thread_state.hpp).
bool is_traced_for_gradient(std::uint64_t layer);
/// True while this thread exports a function.
inline constinit thread_local bool exports = false;
/// Number of gradient hooks that this thread has registered.
inline constinit thread_local unsigned hooks_registered = 0;
} // namespace detail

/// The dynamic value: a reference-counted handle to strided memory with run-time dtype and shape. Copies share the
/// data. A default-constructed handle is null: `defined()` is false, and operators, shape, dtype, `data` and `item`
/// throw `value_error`. Operators on tensors use the calling thread's stack of transforms and modes. Operators that are
/// also members are in `member_operators`. A small tensor needs one allocation, which usually comes from a per-thread
/// list.
class tensor : public member_operators {
public:
  constexpr tensor() noexcept = default;
  tensor(tensor const& o) noexcept;
  tensor(tensor&& o) noexcept : block_(o.block_) { o.block_ = nullptr; }
  tensor& operator=(tensor const& o) & noexcept;
  tensor& operator=(tensor&& o) & noexcept {
    auto* b = block_;
    block_ = o.block_;
    o.block_ = b;
    return *this;
  }
  /// Writes `y` into the part that this temporary stands for (`copy_`): `x.at(0) = y` writes into x.
  template <value Y>
  tensor const& operator=(Y const& y) && {
    return call<copy__t>(y);
  }
  ~tensor();

  /// Allocates row-major memory without initializing its elements.
  static tensor empty(dims const& sizes, varve::dtype type);
  /// Returns a rank-0 tensor of a plain number. It raises the dtype of a result only by its category, as the number
  /// does.
  template <number T>
  static tensor from_number(T v);
  /// Copies `numel(sizes)` elements from row-major memory.
  template <class T>
  static tensor from_data(T const* data, dims const& sizes);
  /// Returns a tensor on memory that the caller keeps alive and frees (`torch.from_blob`).
  static tensor from_blob(void* data, dims const& sizes, dims const& strides, varve::dtype type);
  /// Returns a tensor on foreign memory and calls `release(owner)` when no tensor uses the memory any more, on any
  /// thread. If this function throws, `release` is not called.
  static tensor from_blob(void* data, dims const& sizes, dims const& strides, varve::dtype type,
                          void (*release)(void* owner), void* owner);
  /// Makes a vector, or a tensor of the given shape: `tensor{{1.0, 2.0}}`, `tensor{{1.0, 2.0, 3.0, 4.0}, {2, 2}}`.
  /// Throws `shape_error` if the number of values does not match the shape.
  template <class T, std::size_t N>
  explicit tensor(T const (&values)[N], dims const& sizes = {static_cast<index_t>(N)})
      : tensor(from_data(values, check_count(N, sizes))) {}
  /// Makes a matrix of its rows: `tensor({{1, 2}, {3, 4}})`.
  template <class T, std::size_t N, std::size_t M>
  explicit tensor(T const (&values)[N][M])
      : tensor(from_data(values[0], dims{static_cast<index_t>(N), static_cast<index_t>(M)})) {}
  template <class T, std::size_t N, std::size_t M, std::size_t L>
  explicit tensor(T const (&values)[N][M][L])
      : tensor(
            from_data(values[0][0], dims{static_cast<index_t>(N), static_cast<index_t>(M), static_cast<index_t>(L)})) {}
  /// Makes a matrix of numbers of different types: `tensor({{0.5, 1}, {2, 3}})`. The dtype is float64 if one of them is
  /// floating-point, otherwise int64, or bool if all are bools.
  template <std::size_t N, std::size_t M>
  explicit tensor(detail::literal const (&values)[N][M])
      : tensor(of_literals(values[0], dims{static_cast<index_t>(N), static_cast<index_t>(M)})) {}
  /// Makes a vector: `tensor({0.5, -1, 2})`, `tensor x = {0.5, -1, 2}`. The dtype is that of the numbers. For numbers
  /// of different types it is float64 if one of them is floating-point, otherwise int64.
  template <number A, number B, number... R>
  tensor(A a, B b, R... r) : tensor(of_numbers(a, b, r...)) {}
  /// Makes a vector of a list of numbers of one type, also of one number: `tensor{0.5}`, `tensor({0.5})`, `tensor x =
  /// {0.5}` have shape [1].
  template <number N>
  tensor(std::initializer_list<N> list) : tensor(from_data(list.begin(), {static_cast<index_t>(list.size())})) {}
  /// Makes a tensor of rank 0 with the dtype of the number: `tensor(0.5)`, with parentheses.
  template <number N>
  explicit tensor(N v) : tensor(from_data(&v, {})) {}
  /// Copies a range of numbers, or a range of ranges of equal length (otherwise `shape_error`): a vector of vectors, an
  /// array, a span, a view. The dtype is that of the numbers; doubles give float64.
  template <detail::range_of_numbers R>
  explicit tensor(R const& range) : tensor(of_range(range)) {}
  /// Copies an array.
  template <class T, index_t... D>
  explicit tensor(array<T, D...> const& a) : tensor(from_data(a.data, ints<D...>::to_dims())) {}

  bool defined() const noexcept { return block_ != nullptr; }
  varve::dtype dtype() const;
  dims const& sizes() const;
  dims const& strides() const;
  /// Returns the size of an axis. In a trace it may be symbolic, as the sizes of `sizes()` may be.
  extent size(index_t axis) const { return sizes()[wrap_axis(axis, dim())]; }
  index_t stride(index_t axis) const { return strides()[wrap_axis(axis, dim())]; }
  bool is_floating_point() const { return is_floating(dtype()); }
  dims const& size() const { return sizes(); }
  int dim() const { return sizes().n; }
  int rank() const { return sizes().n; }
  index_t numel() const { return varve::numel(sizes()); }
  bool is_contiguous() const;
  /// True if the tensor was made from a plain C++ number.
  bool is_number() const;
  void mark_number();
  /// Returns the version counter, which the tensor shares with its views and detached values. Each in-place operator
  /// raises it by one. Throws `autograd_error` for inference tensors, which have no counter.
  std::uint32_t version() const;
  void bump_version() const;
  /// Returns the number of writes, which is counted for inference tensors too. Transforms use it, because their own
  /// histories go on in inference mode.
  std::uint32_t writes() const;
  /// Sets the version counter (`preserve_version_counter`, tests).
  void set_version(std::uint32_t v) const;
  /// True if the tensor was made in inference mode. It has no version counter and never gets a history.
  bool is_inference() const;
  /// True if the tensor, or the tensor it is a view of, requires a gradient. Autograd then records or refuses writes
  /// into it, even if the view was made while nothing was recorded.
  bool is_in_recorded_memory() const;
  /// True if no other handle refers to the tensor and no other tensor to its memory. False for memory of `from_blob`,
  /// which has an owner outside.
  bool is_unique() const;
  /// True if this thread made the memory of the tensor in the given epoch (`this_thread_epoch`) or a later one.
  bool is_made_since(std::uint32_t epoch) const;
  /// True if two tensors share memory. Inside a traced function the answer is the same as in a plain run, although a
  /// trace runs on copies.
  bool shares_storage(tensor const& o) const;
  /// True if the memory of the tensor is a copy on which a trace runs.
  bool stands_in() const;

  /// Returns a pointer to the first element. Throws `dtype_error` if the element type is not `T`, and `transform_error`
  /// for a value seen through a transform that is still active.
  template <class T>
  T* data() const;
  /// Returns an untyped pointer to the first element. Passing the element size `item` avoids a look-up of the dtype.
  void* raw() const;
  void* raw(index_t item) const;
  void* raw_inside(index_t item) const;
  /// Returns the only element, converted to `T`. Throws `value_error` if the tensor does not have exactly one. A value
  /// seen through transforms must have one element below them too: a value mapped by `vmap` throws `transform_error`.
  /// `x.item()` is a double; `x.item<std::int64_t>()` keeps all bits of a large integer.
  template <class T = double>
  T item() const;
  /// Returns a copy of the elements in row-major order, converted to `T`. Throws `transform_error` for a value seen
  /// through a transform that is still active.
  template <class T = double>
  std::vector<T> to_vector() const;
  /// Copies the tensor into a static value: `x.to_array<double, 2, 3>()`. Throws `shape_error` or `dtype_error` if the
  /// shape or the dtype differs.
  template <class T, index_t... D>
  array<T, D...> to_array() const;

  /// Returns the truth value of the only element. A value seen through transforms must have one element below them too:
  /// a value mapped by `vmap` throws `transform_error`.
  explicit operator bool() const;
  /// Fails to compile with a message that says what to write instead.
  template <std::same_as<double> T>
  operator T() const {
    static_assert(never<T>, "varve: a tensor was taken for a double; write x.item() for the number in it");
    return 0;
  }

  /// Returns a tensor on the same storage with another layout. Strides and offset count elements; the offset is
  /// relative to the storage. A view shares the history that in-place operators give to its base later.
  tensor with_layout(layout const& l, bool is_view = true) const;
  /// Returns a view of the same storage with another layout, whose elements have another dtype of the same memory.
  /// Writes through it cannot be recorded and are refused where they would be.
  tensor reinterpreted(layout const& l, varve::dtype type) const;
  /// Returns a tensor with the same memory and version counter but without history. It is not a view.
  tensor alias() const;
  layout where() const;

  /// Returns the dispatch keys of the tensor, which the dispatcher uses to choose a kernel.
  dispatch_key_set keys() const noexcept;
  /// Returns a tensor with the same memory or shape and other dispatch keys. A registered backend uses it to turn
  /// memory into its own tensors and to read them as memory again.
  tensor with_keys(dispatch_key_set keys) const;
  /// Returns a tensor with a shape and a dtype but without data (`device='meta'`).
  static tensor meta(dims const& sizes, varve::dtype type);
  /// Returns a tensor with the same shape, dtype, layout and storage but without data. Writes into it raise the version
  /// counter of the storage.
  tensor as_meta() const;
  bool has_data() const noexcept;
  /// True if no other tensor shares the memory.
  bool has_own_memory() const noexcept;
  /// Returns a tensor that stands for the object of a subclass. Users call `make_subclass` instead. `offset` is its
  /// position in the memory that it will share.
  static tensor of_object(subclass_object* object, dims const& sizes, dims const& strides, varve::dtype type,
                          dispatch_key_set keys, extent offset = 0);
  /// Returns the object of a subclass, or null.
  subclass_object* object() const noexcept;
  /// Makes the tensor share the storage of another from now on, so that subclasses can express the aliasing of views.
  void alias_storage_of(tensor const& o) const;

  // Values seen through a run-time transform. The handle owns what the transform stores.
  bool is_wrapped() const noexcept;
  static tensor wrap(tensor value, std::uint64_t layer, int level, tensor extra, edge history, dims const& logical);
  std::uint64_t layer() const;
  /// Returns the level of the transform, counted from 1. It is 0 for a value that no transform wraps and -1 after the
  /// transform has ended, as in PyTorch.
  int level() const;
  tensor const& inner() const;
  tensor const& extra() const;
  /// Stores the state of a transform in a value that it has just made. The value gets memory and a version counter that
  /// are separate from those of its inner value: those of `shares_with`, or new ones if that is undefined.
  void set_state(seen_state* s, tensor const& shares_with) const;
  seen_state* state() const;
  void set_inner(tensor const& t) const;
  /// Returns the inner value after all pending writes into its memory are done.
  tensor current() const;
  void set_extra(tensor const& t) const;
  /// Returns the recorded call that made the value, at the level of its transform. For a view whose base may have been
  /// written in place, use `gradient_edge` instead.
  edge const& history() const;
  void set_history(edge e) const;
  /// Returns the tensor that this one is a view of, or an undefined tensor if it is no view.
  tensor const& base() const;
  /// Marks a value seen through a transform as a view of `base` at its level.
  void set_base(tensor const& base, detail::view_origin o) const;
  /// True if the base of this view was written since the history or tangent of the view was found.
  bool is_overtaken() const;
  detail::view_origin origin() const;
  void set_origin(detail::view_origin o) const;

  // Eager autograd: autograd/*.hpp.
  /// True if a gradient flows to this tensor: it is a leaf that requires one, or recorded operators made it. Throws
  /// `transform_error` inside a function that is traced before its gradient is taken, as the step of a loop under
  /// `grad` is: the answer is not known there.
  bool requires_grad() const;
  /// True if a gradient flows to this tensor, like `requires_grad`, but false inside a function that is traced before
  /// its gradient is taken. The library uses it where it stores histories.
  bool has_history() const;
  /// Requests the gradient of a leaf, or stops requesting it.
  template <class T = bool>
  tensor const& requires_grad_(T on = true) const;
  /// True if the user made the tensor, or operators made it that recorded nothing.
  bool is_leaf() const;
  /// Returns the accumulated gradient. It is undefined before `backward`.
  tensor grad() const;
  void set_grad(tensor const& g) const;
  /// Removes the gradient.
  void zero_grad() const { set_grad(tensor()); }
  /// Keeps the gradient of a value that is no leaf, for `grad()`; those of several backward passes are added up.
  template <class T = tensor>
  void retain_grad() const;
  /// Returns the recorded call that made the tensor; null for leaves and constants.
  template <class T = autograd::node>
  T grad_fn() const;
  /// Returns the index of this tensor among the results of that call (`grad_fn`).
  int output_nr() const;
  /// Registers a function that is called as `f(gradient)` when the gradient of this tensor is known. It may return
  /// another gradient as a replacement. The returned handle removes the hook.
  template <class F>
  hook_handle register_hook(F f) const;
  /// Registers a function that is called as `f(leaf)` after a gradient was added to this leaf.
  template <class F>
  hook_handle register_post_accumulate_grad_hook(F f) const;
  /// True if the tensor is a view of another one.
  bool is_view() const;
  /// Computes the gradients of this value with respect to the leaves it was computed from and adds them to their
  /// `grad()`. `gradient` may be omitted for a scalar.
  template <class T = tensor>
  void backward(T const& gradient = {}, bool retain_graph = false, bool create_graph = false) const;
  /// Returns a tensor with the same memory and version counter but without history. `detach_` removes the history in
  /// place.
  template <class T = tensor>
  T detach() const;
  tensor const& detach_() const;
  /// Returns a tensor with the same memory, without history and with a version counter of its own. Autograd does not
  /// notice writes through it.
  tensor data() const;
  /// Replaces the memory, shape and dtype of this tensor by those of y. Its identity, version counter and hooks stay.
  void set_data(tensor const& y) const;
  /// Gives the tensor a version counter of its own. Together with `take_memory_of` this is what `set_data` does.
  void own_version() const;
  /// Notes that a node has saved this tensor for a gradient.
  void note_kept() const;
  /// True if a node may have saved this tensor, or a tensor that shares its history, for a gradient.
  bool may_be_kept() const;
  void take_memory_of(tensor const& y) const;
  /// Makes this tensor the view of itself that y is. Shape, layout and wrapped value become those of y. Identity, base
  /// and storage stay.
  void become_view(tensor const& y) const;
  /// Makes this tensor another alias of the subclass object that y stands for.
  void become_alias(tensor const& y) const;

  /// True if both are the same handle.
  bool is(tensor const& o) const noexcept { return block_ == o.block_; }
  detail::tensor_block const* id() const noexcept { return block_; }

private:
  static tensor of_literals(detail::literal const* values, dims const& sizes);
  template <class A, class... R>
  static tensor of_numbers(A a, R... r) {
    std::conditional_t<(std::is_same_v<A, R> && ...), A, detail::literal> const all[] = {a, r...};
    dims const sizes{static_cast<index_t>(1 + sizeof...(R))};
    if constexpr ((std::is_same_v<A, R> && ...)) return from_data(all, sizes);
    else return of_literals(all, sizes);
  }
  template <class R>
  static tensor of_range(R const& range);
  dims const& unusual_sizes() const; // of a subclass, or of a null handle
  /// Returns the number of writes into the memory that a view shows.
  std::uint32_t writes_shown() const;
  static dims const& check_count(std::size_t n, dims const& sizes) {
    if (static_cast<index_t>(n) != varve::numel(sizes))
      refuse::shapes_do_not_match("tensor", dims{static_cast<index_t>(n)}, sizes);
    return sizes;
  }
  explicit tensor(detail::tensor_block* b) noexcept : block_(b) {}
  static detail::tensor_block* make(dims const& sizes, varve::dtype type);
  /// Returns a tensor with the same memory and version counter and the given shape.
  tensor shared(dims const& sizes, dims const& strides, extent offset, bool contiguous) const;
  tensor with_any_layout(layout const& l, bool is_view) const;
  tensor as_view(tensor r, bool is_view) const;
  static tensor allocated(detail::tensor_block* b, std::size_t bytes);
  static tensor empty_of_numbers(detail::tensor_block* b, dims const& sizes);
  static tensor empty_of_new_block(dims const& sizes, varve::dtype type);
  detail::tensor_block* block_ = nullptr;
};

template <>
struct traits<tensor> {
  using base = tensor;
  static constexpr int level = 0;
  static dims shape(tensor const& t) { return t.sizes(); }
  static dims type(tensor const& t) { return dims{static_cast<index_t>(t.dtype())}; }
};

/// Returns dtype and shape of a tensor as data, and whether it is a plain number.
inline meta meta_of(tensor const& t) { return {t.dtype(), t.sizes(), t.is_number()}; }

} // namespace varve

#include <varve/value/tensor_block.hpp> // defines the members that need the block
