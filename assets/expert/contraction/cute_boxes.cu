${product}<${tiles}>(${smem}, ${k_begin}, ${k_end}, [&](unsigned char *${to}, int ${k0}, cute::uint64_t *${barrier}) {
    ${boxes}
});
if (${tid} >= ${threads})
    return; // who loads has no results
