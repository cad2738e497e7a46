"""Vision services: from a frame to detections, classifications and point clouds.

`resource/services/vision.py` finds the vision service and the camera, and hands the camera
object to a built-in service. `frame_vision.py` requests a frame; calls for an image that is
already being analyzed share the result. `mlmodel.py` runs the rest in one thread of the engine,
without copies in between:

1. `preprocessing/preprocessor.py` resizes, reorders and normalizes the pixels into a reused
   tensor.
2. The engine (`drivers/mlmodel/onnx.py` and others) runs the model.
3. A decoder (`decoding`) turns the output tensors into candidates: arrays of boxes, scores and
   classes.
4. `postprocessing/postprocessor.py` applies a score threshold and non-maximum suppression
   (`postprocessing/nms.py`). `postprocessing/label_filter.py` applies labels and the configured
   thresholds, and builds the detections. `objects_3d.py` adds point clouds if a call asks for
   them.

The decoder and the format of the input are chosen when the service is built.
`decoding/model_view.py` describes the model. By names, shapes and metadata, `capabilities.py`
chooses a decoder of `decoding/named_outputs.py`, `decoding/families.py` or
`decoding/classifier.py`. `preprocessing/input_plan.py` deduces the input format. One run on a black
image verifies both choices, and `cogwork model inspect` shows the reasons for them.
`settings_check.py` finds settings without effect: wrong remaps, which the service reports as its
fault, and unknown labels, which are ignored.
"""
