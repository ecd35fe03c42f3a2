${product}<${tiles}>(${smem}, ${k_begin}, ${k_end}, [&](unsigned ${to}, int ${k0}, unsigned ${barrier}) {
    ${boxes}
});
if (${tid} >= ${threads})
    return; // who loads has no results
