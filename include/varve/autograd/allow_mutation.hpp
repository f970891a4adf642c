// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/autograd/saved_tensors_hooks.hpp>
#include <varve/interpreter/mode_guard.hpp>
#include <varve/op/clone.hpp>

#include <memory>
#include <vector>

namespace varve {

namespace detail {
/// The values that nodes saved in one scope, each once for its memory and version.
template <class T = tensor>
struct kept_versions {
  struct value {
    T at;
    std::uint32_t version;
    bool copied;
  };
  bool open = true;
  std::vector<std::weak_ptr<value>> all;

  std::shared_ptr<value> keep(tensor const& t) {
    std::size_t live = 0;
    std::shared_ptr<value> found;
    for (auto& w : all) {
      auto v = w.lock();
      if (!v) continue;
      all[live++] = w;
      bool const same = !v->copied && v->at.shares_storage(t) && v->version == t.version() &&
                        v->at.dtype() == t.dtype() && v->at.sizes() == t.sizes() && v->at.strides() == t.strides() &&
                        v->at.where().offset == t.where().offset;
      if (same) found = v;
    }
    all.resize(live);
    if (!found) {
      found = std::make_shared<value>(value{t.alias(), t.version(), false});
      all.push_back(found);
    }
    return found;
  }
  /// Copies the saved values that are about to be overwritten.
  void before_write(tensor const& t) {
    for (auto const& w : all)
      if (auto const v = w.lock(); v && !v->copied && v->at.shares_storage(t)) {
        v->at = contiguous_copy(v->at);
        v->copied = true;
      }
  }
  int copies() const {
    int n = 0;
    for (auto const& w : all)
      if (auto const v = w.lock()) n += v->copied;
    return n;
  }
};
template <class T = tensor>
struct copying_mode : dispatch_mode<copying_mode<T>> {
  std::shared_ptr<kept_versions<T>> kept = std::make_shared<kept_versions<T>>();
  template <class X>
  tensor process(boxed_op const& op, X const& x) {
    if (op.table->kind == op_kind::mutation && x[0].has_data()) kept->before_write(x[0]);
    return op(x);
  }
};
} // namespace detail

/// A scope in which values saved for a backward pass may be written in place. They are copied before the write, each
/// once, and the copies live as long as the graphs that need them
/// (`torch.autograd.graph.allow_mutation_on_saved_tensors`). Memory that is not written is not copied. The backward
/// pass must run inside the scope, and scopes do not nest (`autograd_error`). (A template, so that the header alone
/// instantiates nothing.)
template <class T = tensor>
class allow_mutation_scope {
public:
  allow_mutation_scope() : on_(prepared()), hooks_(pack{mode_.kept}, unpack{mode_.kept}) { current() = this; }
  allow_mutation_scope(allow_mutation_scope const&) = delete;
  allow_mutation_scope& operator=(allow_mutation_scope const&) = delete;
  ~allow_mutation_scope() {
    mode_.kept->open = false;
    current() = nullptr;
  }
  /// Returns the number of saved values that are copies.
  int copies() const { return mode_.kept->copies(); }

private:
  using value = std::shared_ptr<typename detail::kept_versions<T>::value>;
  struct pack {
    std::shared_ptr<detail::kept_versions<T>> kept;
    value operator()(tensor const& t) const { return kept->keep(t); }
  };
  struct unpack {
    std::shared_ptr<detail::kept_versions<T>> kept;
    tensor operator()(value const& v) const {
      if (!kept->open)
        refuse::with<autograd_error>(
            "varve: allow_mutation_on_saved_tensors: backward runs outside of the scope in which the "
            "graph was recorded");
      return v->at;
    }
  };
  static allow_mutation_scope*& current() {
    static constinit thread_local allow_mutation_scope* c = nullptr;
    return c;
  }
  detail::copying_mode<T>& prepared() {
    if (current()) refuse::with<autograd_error>("varve: allow_mutation_on_saved_tensors: such scopes do not nest");
    return mode_;
  }
  detail::copying_mode<T> mode_;
  mode_guard<detail::copying_mode<T>> on_;
  saved_tensors_hooks<pack, unpack> hooks_;
};
/// The scope under PyTorch's name.
using allow_mutation_on_saved_tensors = allow_mutation_scope<>;

} // namespace varve
