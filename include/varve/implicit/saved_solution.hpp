// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/autograd/saved_function.hpp>
#include <varve/implicit/root.hpp>

namespace varve::implicit {

/// A registration of an implicit function, valid during its lifetime, as `saved_function` is one of a custom function:
///
///     auto const f = implicit::root(residuals);
///     implicit::saved_solution<decltype(f), tensor, tensor> const known("my_root", f);
///
/// Programs that call `f` with unknowns and data of these types can then be written by `to_text` and `save`, and read
/// in processes that register the name for a function of the same types. The function, the solver and its settings are
/// those of that process. `X` is the type of the unknowns: a tensor, or a tuple or struct of tensors. `T` are those of
/// the data: tensors, lists of tensors, numbers, enumerators and types without data; captures of a `closure` follow
/// them. Throws `value_error` for a name or function that is already registered.
template <class F, class X, class... T>
class saved_solution {
  using function = std::remove_const_t<F>;
  using parts = detail::solution_parts<X, T...>;
  static_assert((varve::detail::is_saved_argument<T>() && ...),
                "varve: saved_solution: the data of a function in a file are tensors, std::vector<tensor>, numbers, "
                "enumerators and types without data");
  static constexpr std::size_t leaves = varve::detail::leaf_count<X>();

public:
  saved_solution(std::string name, F const& f)
      : entry_{std::move(name), function::template mark<X, T...>(), 1, &words, &make} {
    varve::detail::saved_functions::add(entry_);
    registered = std::make_shared<function const>(f);
  }
  saved_solution(saved_solution const&) = delete;
  saved_solution& operator=(saved_solution const&) = delete;
  ~saved_solution() {
    varve::detail::saved_functions::remove(entry_);
    registered = nullptr;
  }

private:
  static inline std::shared_ptr<function const> registered{};

  static std::vector<std::string> words(varve::detail::boxed_custom_function const& f) {
    auto const& made_of = *static_cast<parts const*>(static_cast<detail::erased_solution const&>(f).parts.get());
    std::vector<std::string> r;
    for (dims const& s : made_of.unknowns.sizes()) {
      r.push_back(std::to_string(s.n));
      for (int k = 0; k < s.n; ++k) r.push_back(std::to_string(s[k].number()));
    }
    std::apply([&](auto const&... x) { (varve::detail::write_argument(r, x), ...); }, made_of.kept.constants());
    return r;
  }
  static varve::detail::custom_function_ptr make(std::vector<std::string> const& words, std::size_t& tensors) {
    std::vector<dims> sizes;
    std::size_t at = 0, ignored = 0;
    for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
      dims s;
      index_t rank = 0;
      if (!varve::detail::read_argument(words, at, ignored, rank) || rank < 0 || rank > 8) return nullptr;
      for (index_t k = 0; k < rank; ++k) {
        index_t n = 0;
        if (!varve::detail::read_argument(words, at, ignored, n) || n < 0) return nullptr;
        s.push_back(n);
      }
      sizes.push_back(s);
    }
    std::tuple<T...> constants{};
    tensors = 1; // the start
    bool const all = std::apply(
        [&](auto&... each) { return (varve::detail::read_argument(words, at, tensors, each) && ...); }, constants);
    if (!all || at != words.size() || !registered) return nullptr;
    return registered->template on_parts<X, T...>(std::make_shared<parts const>(
        detail::tensor_layout<X>(std::move(sizes)), detail::tensor_data<T...>(std::in_place, constants)));
  }
  varve::detail::saved_function_entry entry_;
};

} // namespace varve::implicit
