// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/cat.hpp>
#include <varve/value/tensor.hpp>

#include <string>
#include <utility>
#include <vector>

namespace varve {

/// Tensors by name, in order.
using parameter_dict = std::vector<std::pair<std::string, tensor>>;

/// Base class of callable structures with parameters, for example `struct linear : module { tensor w; linear() {
/// register_parameter("w", w); } tensor operator()(tensor const& x); };`. A registered submodule contributes its
/// parameters as "part.w". A tensor registered under two names is tied: substituting one replaces both.
class module {
public:
  module() = default;
  module(module const&) = delete; // a copy would point to the parameters of the original
  module& operator=(module const&) = delete;

  /// Returns every parameter with its full name, those of submodules included, in the order of registration.
  template <class T = tensor>
  parameter_dict named_parameters() const {
    dependent<parameter_dict, T> r;
    for (auto const& s : named_slots<T>("")) r.push_back({s.first, *s.second});
    return r;
  }

protected:
  ~module() = default;
  template <std::derived_from<tensor> T>
  void register_parameter(std::string name, T& t) {
    own_.push_back({std::move(name), &t});
  }
  template <std::derived_from<module> M>
  void register_module(std::string name, M& m) {
    parts_.push_back({std::move(name), &m});
  }

private:
  template <class M, class... X>
  friend auto functional_call(M& m, std::vector<parameter_dict> const& dicts, bool strict, bool tie_weights,
                              X const&... x);
  template <class T>
  std::vector<std::pair<std::string, T*>> named_slots(std::string const& prefix) const {
    dependent<module, T> const& self = *this;
    std::vector<std::pair<std::string, T*>> r;
    for (auto const& p : self.own_) r.push_back({prefix + p.first, p.second});
    for (auto const& m : self.parts_)
      for (auto& s : m.second->template named_slots<T>(prefix + m.first + ".")) r.push_back(std::move(s));
    return r;
  }
  std::vector<std::pair<std::string, tensor*>> own_;
  std::vector<std::pair<std::string, module*>> parts_;
};

/// Calls `m(x...)` with other tensors in place of its parameters. The original parameters are restored afterwards, even
/// if the call throws. Tied parameters are replaced together unless `tie_weights` is false. Throws `value_error` if a
/// name occurs in two dictionaries, if there is no such parameter, or if tied parameters receive different values. With
/// `strict`, a parameter that no dictionary names also throws `value_error`.
template <class M, class... X>
auto functional_call(M& m, std::vector<parameter_dict> const& dicts, bool strict, bool tie_weights, X const&... x) {
  static_assert(std::is_base_of_v<module, M>, "varve: functional_call: the structure must derive from module");
  auto const named_slots = static_cast<dependent<module, M> const&>(m).template named_slots<tensor>("");
  auto const refuse = [](std::string const& text) {
    refuse::with<value_error>(("varve: functional_call: " + text).c_str());
  };
  struct substitution {
    tensor* at;
    tensor value;
  };
  std::vector<substitution> wanted;
  std::vector<dependent<std::string, M>> seen;
  for (auto const& d : dicts)
    for (auto const& [name, value] : d) {
      for (auto const& s : seen)
        if (s == name) refuse(name + " appears in two dictionaries");
      seen.push_back(name);
      tensor* at = nullptr;
      for (auto const& s : named_slots)
        if (s.first == name) at = s.second;
      if (!at) refuse("there is no parameter " + name);
      tensor const original = *at;
      for (auto const& w : wanted)
        if (w.at == at && !w.value.is(value)) refuse(name + " is tied to a parameter that is given another value");
      for (auto const& s : named_slots)
        if (s.second == at || (tie_weights && s.second->is(original))) wanted.push_back({s.second, value});
    }
  if (strict)
    for (auto const& s : named_slots) {
      bool named = false;
      for (auto const& w : wanted) named = named || w.at == s.second;
      if (!named) refuse("no dictionary names the parameter " + s.first);
    }
  struct restore {
    std::vector<substitution> before;
    ~restore() {
      for (std::size_t k = before.size(); k-- > 0;) *before[k].at = before[k].value;
    }
  } back;
  for (auto const& w : wanted) {
    back.before.push_back({w.at, *w.at});
    *w.at = w.value;
  }
  return m(x...);
}
template <class M, class... X>
auto functional_call(M& m, parameter_dict const& parameters, X const&... x) {
  return functional_call(m, std::vector<dependent<parameter_dict, M>>{parameters}, false, true, x...);
}

/// Returns the parameters of several modules of the same structure, stacked along a new first dimension, so that `vmap`
/// of `functional_call` can run them as an ensemble. A parameter that is a leaf requiring grad in every model stays
/// one. Throws `value_error` if there is no model or if the parameter names differ.
template <class M, class T = tensor>
parameter_dict stack_module_state(std::vector<M*> const& models) {
  if (models.empty()) refuse::with<value_error>("varve: stack_module_state: at least one model is needed");
  std::vector<dependent<parameter_dict, M>> all;
  for (auto const* m : models) all.push_back(m->named_parameters());
  dependent<parameter_dict, M> r;
  for (std::size_t k = 0; k < all[0].size(); ++k) {
    std::vector<T> values;
    bool grad = true;
    for (auto const& d : all) {
      if (d.size() != all[0].size() || d[k].first != all[0][k].first)
        refuse::with<value_error>("varve: stack_module_state: the models differ in their parameters");
      values.push_back(static_cast<T const&>(d[k].second).detach());
      grad = grad && d[k].second.has_history() && d[k].second.is_leaf();
    }
    T const s = stack(values);
    if (grad) s.requires_grad_();
    r.push_back({all[0][k].first, s});
  }
  return r;
}

} // namespace varve
