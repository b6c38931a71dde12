"""Stands in for micropython-lib's `ssd1306`: the same class, methods and bytes on the wires (a command is
a transfer of its own behind 80h, data stand behind 40h), written from the controller's data sheet."""

import framebuf

SET_UP = b"\xae\x20\x00\x40\xa1\xa8\x3f\xc8\xd3\x00\xda\x12\xd5\x80\xd9\xf1\xdb\x30\x81\xff\xa4\xa6\x8d\x14\xaf"


class SSD1306_I2C(framebuf.FrameBuffer):
    def __init__(self, width, height, i2c, addr=0x3C, external_vcc=False):
        self.width, self.height, self.pages = width, height, height // 8
        self.i2c, self.addr = i2c, addr
        self.buffer = bytearray(width * height // 8)
        super().__init__(self.buffer, width, height, framebuf.MONO_VLSB)
        self._command, self._data = bytearray(b"\x80\x00"), [b"\x40", self.buffer]
        for code in SET_UP:
            self.write_cmd(code)
        self.fill(0)
        self.show()

    def write_cmd(self, code):
        self._command[1] = code
        self.i2c.writeto(self.addr, self._command)

    def poweroff(self):
        self.write_cmd(0xAE)

    def poweron(self):
        self.write_cmd(0xAF)

    def contrast(self, level):
        self.write_cmd(0x81)
        self.write_cmd(level)

    def show(self):
        for code in (0x21, 0, self.width - 1, 0x22, 0, self.pages - 1):
            self.write_cmd(code)
        self.i2c.writevto(self.addr, self._data)
