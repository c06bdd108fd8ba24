# The black box: reads a line of JSON with the parameters of a pump, and prints its cost, with a measurement error.
# Run it as  awk -v seed=1 -f pump.awk.  It fails (exit status 3, no output) where the pump would burst.

function number(name,    at) {
    at = match($0, "\"" name "\": *[-+0-9.eE]+")
    return at ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0 : 0
}

function text(name) {
    match($0, "\"" name "\": *\"[^\"]*\"")
    return substr($0, RSTART + length(name) + 5, RLENGTH - length(name) - 6)
}

{
    srand(seed)
    tip = 3.14159265 * number("impeller") / 1000 * number("speed") / 60 # metres a second
    if (tip > 45) exit 3
    lift = number("stages") * (text("blades") == "curved" ? 0.55 : 0.48) * tip * tip / 9.81
    short = (lift - number("head")) / number("head")
    power = (tip / 20) ^ 3 * number("stages") * (number("impeller") / 160) ^ 2
    noise = sqrt(-2 * log(1 - rand())) * cos(6.28318531 * rand())
    printf "%.6f\n", 40 * short * short + power + 0.4 * number("stages") + 0.1 * noise
}
