for (${type} ${at} = ${first}; ${at} < ${end}; ${at} += kTeam * kVec * kItems) {
    ${body}
}
