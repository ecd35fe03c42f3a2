//% each boxes
gemm_copy_box(to + ${at}, &map_${name}, k0, ${wide}${first}, ${slab}, barrier);
//% end
