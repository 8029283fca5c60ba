"""A partition as this broker holds it: appends, high watermark, fetches and what waits for them."""
