"""AutoTuner: the occupancy of a kernel at every block size, and which block is best by it."""

from __future__ import annotations

from typing import NamedTuple

from cudadrv.occupancy_model import Result, of_arch

LARGEST = 1024


class Resources(NamedTuple):
    """What a compiled kernel needs: registers and bytes of a thread or block, and its limit."""

    regs: int
    shared: int
    local: int
    const: int
    maxthreads: int


class AutoTuner:
    """The theoretical occupancy of a kernel for each number of threads of a block.

    A driver knows better for its own device: ``kernel.bind().occupancy`` asks it.

    Attributes:
        table: threads of a block, multiples of a warp -> cudadrv.occupancy_model.Result.
    """

    def __init__(
        self,
        info: Resources,
        cc: tuple[int, int],
        smem_config: int | None = None,
        warp_size: int = 32,
        dynsmem: int = 0,
    ) -> None:
        """Compute the table.

        Args:
            info: of the compiled kernel.
            cc: the compute capability.
            smem_config: bytes of shared memory of a multiprocessor; by default as many as it has.
            dynsmem: bytes of dynamic shared memory of a block.

        Raises:
            ValueError: no such compute capability is known.
        """
        model = of_arch("sm_{}{}".format(*cc))
        if smem_config is not None:
            model = model._replace(shared=smem_config)
        limit = min(info.maxthreads or LARGEST, LARGEST)
        self.table: dict[int, Result] = {
            tpb: model.run(tpb, info.regs, info.shared + dynsmem)
            for tpb in range(warp_size, limit + 1, warp_size)
        }
        self._warp_size = warp_size

    @property
    def by_occupancy(self) -> list[tuple[float, int]]:
        """(occupancy, threads of a block), the best and of equals the smallest block first."""
        found = ((result.occupancy, tpb) for tpb, result in self.table.items())
        return sorted(found, key=lambda each: (-each[0], each[1]))

    def best(self) -> int:
        """The smallest block of the highest occupancy; 0 if the kernel fits with none."""
        found = self.by_occupancy
        return found[0][1] if found and found[0][0] else 0

    def max_occupancy_min_blocks(self) -> int:
        """The largest block of the highest occupancy: the fewest blocks; 0 if there is none."""
        found = self.by_occupancy
        return max((tpb for part, tpb in found if part and part == found[0][0]), default=0)

    def closest(self, tpb: int) -> float:
        """The occupancy of a block of *tpb* threads, whose last warp may be a part of one.

        Raises:
            ValueError: no block of the kernel can have so many.
        """
        rounded = -(-tpb // self._warp_size) * self._warp_size
        if rounded not in self.table:
            raise ValueError(
                f"tpb={tpb}: a block of this kernel has 1 to {max(self.table)} threads"
            )
        return self.table[rounded].occupancy

    def prefer(self, *sizes: int) -> int | None:
        """That of *sizes* with the highest occupancy, of equals the smallest; None if none fits."""
        fitting = [tpb for tpb in sizes if 0 < tpb <= max(self.table) and self.closest(tpb)]
        return min(fitting, key=lambda tpb: (-self.closest(tpb), tpb), default=None)
