for (int ${next} = 0; ${next} < ${part}; ${next}++)
    ${carry} = ${combine}(${carry}, ${parts}[${row} * ${split} + ${next}]);
