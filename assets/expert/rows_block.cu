{
    ${body}
}
