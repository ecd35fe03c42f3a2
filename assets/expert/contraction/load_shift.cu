${exponents}[${number}] = ${shift}[(${slab} * ((${depth} + 63) / 64) + k0 / 64) * ${tiles} + ${tile}];
