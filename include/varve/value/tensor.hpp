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
/// How a view came about, where that forbids writing into it (AG-16).
enum class view_origin : unsigned char { usual, no_grad, inference, many, custom, leaf, function, other_dtype };
/// Is a transform still there to process its values, on this thread? (dispatch/thread_state.hpp)
bool is_at_work(std::uint64_t layer);
/// Is it a trace that is at work on this thread? (dispatch/thread_state.hpp)
bool is_traced(std::uint64_t layer);
/// ... of a function whose gradient will be taken, by its graph? (dispatch/thread_state.hpp)
bool is_traced_for_gradient(std::uint64_t layer);
/// Is a function of this thread exported?
inline constinit thread_local bool exports = false;
/// How many hooks of gradients this thread has registered.
inline constinit thread_local unsigned hooks_registered = 0;
} // namespace detail

/// The dynamic value: a reference-counted handle to strided memory with run-time dtype and shape. Copies share the
/// data; a null handle is "absent": `defined()` tells, and operators, shape, dtype, `data` and `item` refuse it
/// (`value_error`). Operators on tensors consult the calling thread's stack of transforms and modes; those that are
/// members too are in `member_operators`. One allocation for small tensors, from a per-thread list.
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
  /// A part that is assigned to, as in `x.at(0) = y`, writes into x (`copy_`).
  template <value Y>
  tensor const& operator=(Y const& y) && {
    return call<copy__t>(y);
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
  /// A tensor on memory of somebody else, who keeps it alive and frees it (`torch.from_blob`).
  static tensor from_blob(void* data, dims const& sizes, dims const& strides, varve::dtype type);
  /// ... who is told, `release(owner)`, when no tensor needs it any more, on whichever thread; not if this throws.
  static tensor from_blob(void* data, dims const& sizes, dims const& strides, varve::dtype type,
                          void (*release)(void* owner), void* owner);
  /// `tensor{{1.0, 2.0}}`, with a shape `tensor{{1.0, 2.0, 3.0, 4.0}, {2, 2}}`.
  template <class T, std::size_t N>
  explicit tensor(T const (&values)[N], dims const& sizes = {static_cast<index_t>(N)})
      : tensor(from_data(values, check_count(N, sizes))) {}
  /// `tensor({{1, 2}, {3, 4}})`.
  template <class T, std::size_t N, std::size_t M>
  explicit tensor(T const (&values)[N][M])
      : tensor(from_data(values[0], dims{static_cast<index_t>(N), static_cast<index_t>(M)})) {}
  template <class T, std::size_t N, std::size_t M, std::size_t L>
  explicit tensor(T const (&values)[N][M][L])
      : tensor(
            from_data(values[0][0], dims{static_cast<index_t>(N), static_cast<index_t>(M), static_cast<index_t>(L)})) {}
  /// `tensor({{0.5, 1}, {2, 3}})`: float64 when one of them is floating.
  template <std::size_t N, std::size_t M>
  explicit tensor(detail::literal const (&values)[N][M])
      : tensor(of_literals(values[0], dims{static_cast<index_t>(N), static_cast<index_t>(M)})) {}
  /// `tensor({0.5, -1, 2})`, `tensor x = {0.5, -1, 2}`: of the numbers' type; of several types float64 when one is
  /// floating, else int64.
  template <number A, number B, number... R>
  tensor(A a, B b, R... r) : tensor(of_numbers(a, b, r...)) {}
  /// `tensor(0.5)`, of rank 0 and the number's type; a vector of one number is `tensor({0.5})`.
  template <number N>
  explicit tensor(N v) : tensor(from_data(&v, {})) {}
  /// A copy of a range of numbers, or of ranges of them that are as long as each other (`shape_error`): a vector of
  /// vectors, an array, a span, a view. The dtype is that of the numbers: of doubles float64.
  template <detail::range_of_numbers R>
  explicit tensor(R const& range) : tensor(of_range(range)) {}
  /// A copy of an array.
  template <class T, index_t... D>
  explicit tensor(array<T, D...> const& a) : tensor(from_data(a.data, ints<D...>::to_dims())) {}

  bool defined() const noexcept { return block_ != nullptr; }
  varve::dtype dtype() const;
  dims const& sizes() const;
  dims const& strides() const;
  /// The size of an axis, which may be symbolic in a trace, as those of `sizes()`.
  extent size(index_t axis) const { return sizes()[wrap_axis(axis, dim())]; }
  index_t stride(index_t axis) const { return strides()[wrap_axis(axis, dim())]; }
  bool is_floating_point() const { return is_floating(dtype()); }
  dims const& size() const { return sizes(); }
  int dim() const { return sizes().n; }
  int rank() const { return sizes().n; }
  index_t numel() const { return varve::numel(sizes()); }
  bool is_contiguous() const;
  /// Made from a plain C++ number.
  bool is_number() const;
  void mark_number();
  /// Version counter, shared with views and detached values and raised once per in-place operator (DT-1, DT-2);
  /// `autograd_error` for inference tensors, which have none.
  std::uint32_t version() const;
  void bump_version() const;
  /// What is counted of inference tensors too, for levels of transforms, whose own histories go on in inference mode.
  std::uint32_t writes() const;
  /// Lowers or raises it by hand: `preserve_version_counter` and tests.
  void set_version(std::uint32_t v) const;
  /// Made in inference mode: it has no version counter, and no history ever (DT-2, AG-20).
  bool is_inference() const;
  /// Does it require a gradient, or what it is a view of? Then a write into it is autograd's, also where the view was
  /// made with nothing recorded.
  bool is_in_recorded_memory() const;
  /// Does nobody else hold it or its memory? That of `from_blob` is somebody's.
  bool is_unique() const;
  /// Was its memory made by this thread in an epoch of it (`this_thread_epoch`), or a later one?
  bool is_made_since(std::uint32_t epoch) const;
  /// Do two tensors share memory? In a function that is traced as in one that runs, though a trace runs on copies.
  bool shares_storage(tensor const& o) const;
  /// Does it lie in a copy that a trace runs on?
  bool stands_in() const;

  /// Pointer to the first element; the element type must be `T`. Values seen through a transform have none while it is
  /// at work: `transform_error`.
  template <class T>
  T* data() const;
  /// Pointer to the first element, untyped; faster for who knows the bytes of an element.
  void* raw() const;
  void* raw(index_t item) const;
  void* raw_inside(index_t item) const;
  /// The only element, converted to `T`, through transforms that keep it single; mapped by `vmap` it is refused
  /// (`transform_error`). `x.item()` is a double; `x.item<std::int64_t>()` all of a great integer.
  template <class T = double>
  T item() const;
  /// A copy of the elements in row-major order, converted to `T`. Refused where `data` is.
  template <class T = double>
  std::vector<T> to_vector() const;
  /// A copy as a static value: `x.to_array<double, 2, 3>()`. The shape must be this one (`shape_error`), the dtype too
  /// (`dtype_error`).
  template <class T, index_t... D>
  array<T, D...> to_array() const;

  /// The truth of the only element, through transforms that keep it single; mapped by `vmap` it has none
  /// (`transform_error`).
  explicit operator bool() const;
  /// A refusal, which says what to write.
  template <std::same_as<double> T>
  operator T() const {
    static_assert(never<T>, "varve: a tensor was taken for a double; write x.item() for the number in it");
    return 0;
  }

  /// A tensor on the same storage with another layout (elements; the offset is relative to the storage). A view shares
  /// the history that in-place operators on its base get later.
  tensor with_layout(layout const& l, bool is_view = true) const;
  /// A tensor on the same storage with another layout, in elements of another dtype, of which the memory is made: a
  /// view through which nothing may be written that is recorded.
  tensor reinterpreted(layout const& l, varve::dtype type) const;
  /// The same memory and version counter without history: not a view (DT-4).
  tensor alias() const;
  layout where() const;

  /// Its dispatch keys: what the dispatcher reads of it (DK-2).
  dispatch_key_set keys() const noexcept;
  /// The same memory, or shape, under other keys: how a registered backend makes its tensors of memory, and reads them
  /// as memory again.
  tensor with_keys(dispatch_key_set keys) const;
  /// A shape and a dtype without data (`device='meta'`).
  static tensor meta(dims const& sizes, varve::dtype type);
  /// Its shape, dtype and layout without data, on the same storage: what is written into it raises one version counter.
  tensor as_meta() const;
  bool has_data() const noexcept;
  /// Does no other tensor share its memory?
  bool has_own_memory() const noexcept;
  /// A tensor that stands for the object of a subclass. Use `make_subclass`. `offset`: where it lies in memory that it
  /// is to share.
  static tensor of_object(subclass_object* object, dims const& sizes, dims const& strides, varve::dtype type,
                          dispatch_key_set keys, extent offset = 0);
  /// The object of a subclass, or null.
  subclass_object* object() const noexcept;
  /// Shares the storage of another tensor from now on: the aliasing of views, for subclasses (MD-16).
  void alias_storage_of(tensor const& o) const;

  // Values seen through a run-time transform (design: the payload hangs off the handle).
  bool is_wrapped() const noexcept;
  static tensor wrap(tensor value, std::uint64_t layer, int level, tensor extra, edge history, dims const& logical);
  std::uint64_t layer() const;
  /// From 1; 0 of what no transform sees, -1 where the transform has ended, as in PyTorch.
  int level() const;
  tensor const& inner() const;
  tensor const& extra() const;
  /// Gives a value that a transform has just made what the transform keeps of it, and memory and a version counter
  /// apart from what it holds: those of another such value, or its own.
  void set_state(seen_state* s, tensor const& shares_with) const;
  seen_state* state() const;
  void set_inner(tensor const& t) const;
  /// What it holds, with all that was written into its memory.
  tensor current() const;
  void set_extra(tensor const& t) const;
  /// The recorded call that made it, at the level it is seen at. Of a view that an in-place operator may have
  /// overtaken, ask `gradient_edge`.
  edge const& history() const;
  void set_history(edge e) const;
  /// The tensor that this is a view of; undefined when it is none.
  tensor const& base() const;
  /// Says of a value seen through a transform that it is a view, at its level (AG-15).
  void set_base(tensor const& base, detail::view_origin o) const;
  /// Was the base of this view written into since its history, or tangent, was found?
  bool is_overtaken() const;
  detail::view_origin origin() const;
  void set_origin(detail::view_origin o) const;

  // Eager autograd: autograd/*.hpp.
  /// Does a gradient flow to it, as to a leaf of the user or through recorded operators? Refused (`transform_error`) in
  /// a function that is traced before its gradient is taken, as the step of a loop under `grad`: there it is not known.
  bool requires_grad() const;
  /// The same for who keeps histories, as far as they go: false in such a function.
  bool has_history() const;
  /// Asks for the gradient of a leaf, or gives that up (AG-19).
  template <class T = bool>
  tensor const& requires_grad_(T on = true) const;
  /// Was it made by the user, or by operators that recorded nothing?
  bool is_leaf() const;
  /// The collected gradient: undefined before `backward`.
  tensor grad() const;
  void set_grad(tensor const& g) const;
  /// Forgets the gradient.
  void zero_grad() const { set_grad(tensor()); }
  /// Keeps the gradient of a value that is no leaf.
  template <class T = tensor>
  void retain_grad() const;
  /// What recorded it; null for a leaf and for a constant.
  template <class T = autograd::node>
  T grad_fn() const;
  /// Which result of that it is.
  int output_nr() const;
  /// `f(gradient)` is called when its gradient is known, and may return another in its place (AG-9). The handle removes
  /// it.
  template <class F>
  hook_handle register_hook(F f) const;
  /// `f(leaf)` is called after a gradient was added to this leaf (AG-11).
  template <class F>
  hook_handle register_post_accumulate_grad_hook(F f) const;
  /// Is it a view of another tensor?
  bool is_view() const;
  /// Gradients of this value with respect to the leaves it was made of, added to theirs. `gradient` may be left out for
  /// a scalar (AG-1).
  template <class T = tensor>
  void backward(T const& gradient = {}, bool retain_graph = false, bool create_graph = false) const;
  /// The same memory and version counter, without history (DT-4); in place (DT-17).
  template <class T = tensor>
  T detach() const;
  tensor const& detach_() const;
  /// The same memory without history and with a counter of its own (DT-3): what is written through it, autograd does
  /// not see.
  tensor data() const;
  /// x keeps its identity, counter and hooks; memory, shape and dtype become those of y (DT-5, DT-6).
  void set_data(tensor const& y) const;
  /// Its parts: a counter of its own, and memory, shape and dtype of another tensor.
  void own_version() const;
  /// A node keeps it for a gradient.
  void note_kept() const;
  /// ... may one keep it, or what shares its history?
  bool may_be_kept() const;
  void take_memory_of(tensor const& y) const;
  /// Becomes the view of itself that y is: shape, layout and what it is seen as are those of y, the identity, the base
  /// and whose memory it is stay.
  void become_view(tensor const& y) const;
  /// Becomes another alias of the object that y stands for.
  void become_alias(tensor const& y) const;

  /// The very same handle.
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
  dims const& unusual_sizes() const; // of a subclass, or of none
  /// How often was written into what a view shows?
  std::uint32_t writes_shown() const;
  static dims const& check_count(std::size_t n, dims const& sizes) {
    if (static_cast<index_t>(n) != varve::numel(sizes))
      refuse::shapes_do_not_match("tensor", dims{static_cast<index_t>(n)}, sizes);
    return sizes;
  }
  explicit tensor(detail::tensor_block* b) noexcept : block_(b) {}
  static detail::tensor_block* make(dims const& sizes, varve::dtype type);
  /// The same memory and version counter, of a shape.
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

/// dtype and shape of a tensor as data, with its being a plain number.
inline meta meta_of(tensor const& t) { return {t.dtype(), t.sizes(), t.is_number()}; }

} // namespace varve

#include <varve/value/tensor_block.hpp> // the members, which need the block
