// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dispatch_key.hpp>
#include <varve/core/message.hpp>
#include <varve/value/grad_node.hpp>
#include <varve/value/storage.hpp>
#include <varve/value/strided.hpp>
#include <varve/value/traits.hpp>

#include <cstring>

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
/// What a tensor's handle leads to: memory, a value seen through a transform, the object of a subclass, or a shape
/// alone (`meta`).
enum class payload : unsigned char { memory, seen, subclass, nothing };
/// How a view came about, where that forbids writing into it (AG-16).
enum class view_origin : unsigned char { usual, no_grad, inference, many, custom, leaf, function };
/// Is a transform still there to process its values, on this thread? (dispatch/thread_state.hpp)
bool is_at_work(std::uint64_t layer);
/// Is it a trace that is at work on this thread? (dispatch/thread_state.hpp)
bool is_traced(std::uint64_t layer);
[[noreturn]] VARVE_COLD inline void refuse_traced_number() {
  throw transform_error(
      "varve: a value that is being traced cannot become a number, nor decide an if: the program would be the one for "
      "this value only; use where, cond or while_loop, or pass it as a plain number");
}
[[noreturn]] VARVE_COLD inline void refuse_data(payload p) {
  if (p == payload::seen)
    throw transform_error(
        "varve: data of a tensor seen through a transform was asked for; read it after the transform has returned");
  if (p == payload::subclass)
    throw transform_error("varve: data of a tensor subclass was asked for, which has none of its own; unwrap it first");
  throw transform_error("varve: data of a meta tensor was asked for, which has a shape and a dtype only");
}
[[noreturn]] VARVE_COLD inline void refuse_alias_of_seen() {
  throw transform_error("varve: alias: a tensor seen through a transform has no memory of its own to share; use "
                        "detach(x), or a view");
}
/// Who is told what a program reads of tensors as C++ values, while it is traced for later calls.
struct read_watcher {
  virtual void number(tensor const& t) = 0;
  virtual void memory(tensor const& t) = 0;

protected:
  ~read_watcher() = default;
};
inline constinit thread_local read_watcher* watches_reads = nullptr;
/// Who makes something else of tensors that a program makes of C++ values (`fake_mode`).
struct literal_lifter {
  virtual tensor lifted(tensor const& t) = 0;

protected:
  ~literal_lifter() = default;
};
inline constinit thread_local literal_lifter* lifts_literals = nullptr;
/// Who is told that a tensor becomes another value under the same handle, before, when it may be refused, and after: a
/// tracer.
struct rename_watcher {
  void (*renaming)(rename_watcher& self, char const* op, tensor const& x); // no virtual functions: each unit has those
  void (*renamed)(rename_watcher& self, tensor const& x, tensor const& y);
  /// `y` is the data of `x` (`tensor::data`).
  void (*read)(rename_watcher& self, tensor const& x, tensor const& y);
};
inline constinit thread_local rename_watcher* watches_renames = nullptr;
[[noreturn]] VARVE_COLD inline void refuse_undefined(char const* what) {
  throw value_error((std::string("varve: ") + what +
                     ": the tensor is undefined; ask defined() first, as of a gradient that may not have arrived")
                        .c_str());
}
} // namespace detail

/// The dynamic value: a reference-counted handle to strided memory with run-time dtype and shape. Copies share the
/// data; a null handle is "absent": `defined()` tells, and operators, shape, dtype, `data` and `item` refuse it
/// (`value_error`). Operators on tensors consult the calling thread's stack of transforms and modes. One allocation for
/// small tensors, from a per-thread list.
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
  /// A tensor on memory of somebody else, who keeps it alive and frees it (`torch.from_blob`).
  static tensor from_blob(void* data, dims const& sizes, dims const& strides, varve::dtype type);
  /// `tensor{{1.0, 2.0}}`, with a shape `tensor{{1.0, 2.0, 3.0, 4.0}, {2, 2}}`.
  template <class T, std::size_t N>
  explicit tensor(T const (&values)[N], dims const& sizes = {static_cast<index_t>(N)})
      : tensor(from_data(values, check_count(N, sizes))) {}

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
  /// (`transform_error`).
  template <class T>
  T item() const;

  /// The truth of the only element, through transforms that keep it single; mapped by `vmap` it has none
  /// (`transform_error`).
  explicit operator bool() const;

  /// A tensor on the same storage with another layout (elements; the offset is relative to the storage). A view shares
  /// the history that in-place operators on its base get later.
  tensor with_layout(layout const& l, bool is_view = true) const;
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
  /// Does a gradient flow to it, as to a leaf of the user or through recorded operators?
  bool requires_grad() const;
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
