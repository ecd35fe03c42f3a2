gemm_copy_box(to + ${tile_at}, pass ? &${wide_map} : &${map}, k0, ${wide}${first},
              ${wide}((pass ? 3 : 2) * ${slab}), barrier);
gemm_copy_box(to + ${second_at}, pass ? &${wide_map} : &${map}, k0, ${wide}${first},
              ${wide}(pass ? 3 * ${slab} + pass : 2 * ${slab} + 1), barrier);
