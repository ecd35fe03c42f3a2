${comment}
${plan}
${includes}
${helpers}
${vectors}
${functions}
${kernels}
