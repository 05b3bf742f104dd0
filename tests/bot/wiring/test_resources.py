from __future__ import annotations

from pathlib import Path

from tests.bot.test_app import reverse


async def test_files_outside_the_media_folder_are_never_sent(tmp_path: Path) -> None:
    async with reverse(media_dir=tmp_path, store_url=f"sqlite:///{tmp_path}/frost.db") as (_, simulator, model):
        await simulator.say("@bot send me a message with a picture")
        await simulator.wait_sent(1)
        result = model.requests[-1]["messages"][-1]
        assert "there is no file demo.png in the media folder" in result["content"]
        assert all(segment["type"] != "image" for message in simulator.sent for segment in message.segments)
