"""The launch plans of ${name}, as arithmetic over its sizes.

${origin}
"""
import torch


def in_range(v, least, most):
    return least <= v <= most
//% each kernels


class Kernel${number}:
    title = "${name}, kernel ${number}"
    arch, cubin, source = "${arch}", "${code}_${number}.cubin", "${code}_${number}.cu"
    source_sha256 = "${source_hash}"
    own = (${own})  # the sizes that it was made for: ${time}
    # Of each tensor, what is read and then what is only written: the type, what divides its address.
    types = (${types})
    align = (${aligns})

    @staticmethod
    def admits(${settable}):
        try:
//% if sizes
            ${sizes}
//% end
            return bool(
//% each checks
                (${holds}) and  # ${text}
//% end
                True)
        except ZeroDivisionError:
            return False

    @staticmethod
    def plan(${settable}):
//% if sizes
        ${sizes}
//% end
        return {
            "ntensors": ${ntensors},
            # The first steps, so many, are done once for the same content of these tensors; they
            # make the workspaces that are marked True.
            "once": ${once_steps},
            "parameters": [${parameter_places}],
            "workspaces": [
//% each workspaces
                (${bytes}, ${align}, ${kept}),  # ${workspace}
//% end
            ],
            "maps": [
//% each maps
                (${of}, ${type}, [${extents}], [${strides}], [${box}], [${steps}], ${swizzle}, ${fill}),
//% end
            ],
            "steps": [
//% each steps
//% if memset
                ("memset", ${of}, ${pattern}, ${size}, ${count}),
//% else
                ("launch", "${kernel}", (${grid}), (${block}), (${cluster}), ${cooperative}, ${shared}, [
                    ${params}]),
//% end
//% end
            ],
        }
//% end


KERNELS = [
//% each kernels
    Kernel${number},
//% end
]
